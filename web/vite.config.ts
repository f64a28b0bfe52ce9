import { defineConfig } from "vite";

// One script and one style sheet, which the Python package puts into every page.
export default defineConfig({
  build: {
    target: "es2022",
    outDir: "../src/etmem/report/assets",
    emptyOutDir: true,
    cssMinify: true,
    lib: { entry: "src/main.ts", formats: ["iife"], name: "etmem", fileName: () => "report.js", cssFileName: "report" },
  },
});
