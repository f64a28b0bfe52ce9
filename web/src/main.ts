import "./style.css";
import { decode, type Report } from "./data";
import { diffPage, type Page } from "./diff/page";
import { programsPage } from "./diff/programs";
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
import { told } from "./sections/told";
import { verdict } from "./sections/verdict";
import { State } from "./state";
import { tooltipElement } from "./tooltip";

const PARTS = [verdict, findings, balance, timeline, owners, arenas, delegates, operators, flame, told, phases, issues, footer];

async function start(): Promise<void> {
  const page = document.getElementById("report")!;
  try {
    const report = await decode(document.getElementById("etmem-data")!.textContent ?? "");
    document.body.append(prepareWords(report.words), tooltipElement());
    const { states, parts } = "diff" in report ? diffPage(report) : "programs" in report ? programsPage(report) : runPage(report);
    put(page, ...parts);
    keyboard(states);
    document.documentElement.dataset["ready"] = "true";
  } catch (error) {
    put(page, h("p", { class: "alarm", role: "alert" }, `This report cannot be shown: ${String(error)}`));
    throw error;
  }
}

function runPage(report: Report): Page {
  const state = new State(report);
  const parts = PARTS.map((part) => part(state));
  return { states: [state], parts: [header(state), navigation(parts), alarm(state), ...parts] };
}

void start();
