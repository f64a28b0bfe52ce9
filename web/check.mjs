// Builds the page's script and style into a scratch folder and compares them with what the Python package carries.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "vite";

const carried = new URL("../src/etmem/report/assets/", import.meta.url).pathname;
const built = mkdtempSync(join(tmpdir(), "etmem-web-"));
try {
  await build({ logLevel: "warn", build: { outDir: built } });
  const names = (folder) => readdirSync(folder).sort();
  const differing = names(built).filter((name) => !names(carried).includes(name) ||
    !readFileSync(join(built, name)).equals(readFileSync(join(carried, name))));
  if (differing.length > 0 || names(built).length !== names(carried).length) {
    console.error(`src/etmem/report/assets is not what web/ builds (${differing.join(", ") || "files differ"}): run make web`);
    process.exitCode = 1;
  }
} finally {
  rmSync(built, { recursive: true });
}
