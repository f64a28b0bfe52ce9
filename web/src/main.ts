import "./style.css";
import { decode } from "./data";
import { h, put } from "./dom";
import { prepareWords } from "./explain";
import { keyboard } from "./keyboard";
import { arenas } from "./sections/arenas";
import { balance } from "./sections/balance";
import { delegates } from "./sections/delegates";
import { findings } from "./sections/findings";
import { flame } from "./sections/flame";
import { footer } from "./sections/footer";
import { header, navigation } from "./sections/header";
import { alarm, issues } from "./sections/issues";
import { operators } from "./sections/operators";
import { owners } from "./sections/owners";
import { phases } from "./sections/phases";
import { timeline } from "./sections/timeline";
import { verdict } from "./sections/verdict";
import { State } from "./state";
import { tooltipElement } from "./tooltip";

const PARTS = [verdict, findings, balance, timeline, owners, arenas, delegates, operators, flame, phases, issues, footer];

async function start(): Promise<void> {
  const page = document.getElementById("report")!;
  try {
    const state = new State(await decode(document.getElementById("etmem-data")!.textContent ?? ""));
    const dialog = prepareWords(state.report);
    put(page, header(state), navigation(), alarm(state), ...PARTS.map((part) => part(state)));
    document.body.append(dialog, tooltipElement());
    keyboard(state);
    document.documentElement.dataset["ready"] = "true";
  } catch (error) {
    put(page, h("p", { class: "alarm", role: "alert" }, `This report cannot be shown: ${String(error)}`));
    throw error;
  }
}

void start();
