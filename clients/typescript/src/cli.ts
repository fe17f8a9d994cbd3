/**
 * Takes part in a session from a terminal.
 *
 * usage: tsx src/cli.ts --invitation FILE --data CSV --labels CSV --home FOLDER
 *        [--id-column NAME]... [--accept-risk CODE]... [--safety-number NUMBER]
 *        [--entropy-file FILE]
 *
 * Exit codes: 0 labels are written, 1 a problem, 2 the command line.
 */

import fs from "node:fs";
import { parseArgs } from "node:util";
import { Party, type PartyOptions } from "./party.ts";
import { readCsv } from "./table/csv.ts";
import { asProblem } from "./wire/problems.ts";

const OPTIONS = {
  invitation: { type: "string" },
  data: { type: "string" },
  labels: { type: "string" },
  home: { type: "string" },
  "id-column": { type: "string", multiple: true },
  "accept-risk": { type: "string", multiple: true },
  "safety-number": { type: "string" },
  "entropy-file": { type: "string" },
} as const;
const REQUIRED = ["invitation", "data", "labels", "home"] as const;

async function run(): Promise<number> {
  const { values } = parseArgs({ options: OPTIONS });
  const missing = REQUIRED.filter((name) => values[name] === undefined);
  if (missing.length) {
    console.error(`Missing: ${missing.map((name) => `--${name}`).join(", ")}.`);
    return 2;
  }
  const entropy = values["entropy-file"] && readText(values["entropy-file"]);
  const number = values["safety-number"];
  const options: PartyOptions = {
    home: values.home!,
    acceptedRisks: values["accept-risk"] ?? [],
    onProgress: (line) => console.error(line),
    ...(entropy ? { entropy: new Uint8Array(Buffer.from(entropy, "hex")) } : {}),
    ...(number === undefined ? {} : { safetyNumber: number }),
  };
  const table = readCsv(readText(values.data!), ...(values["id-column"] ?? []));
  const party = await Party.join(readText(values.invitation!), options);
  const { labels } = await party.run(table);
  const names = table.ids ?? labels.map((_, row) => String(row));
  const lines = labels.map((label, row) => `${quoted(names[row]!)},${label}\n`);
  fs.writeFileSync(values.labels!, `id,cluster\n${lines.join("")}`, { mode: 0o600 });
  return 0;
}

function readText(file: string): string {
  return fs.readFileSync(file, "utf8").trim();
}

function quoted(cell: string): string {
  return /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}

try {
  process.exitCode = await run();
} catch (error) {
  const { type, message } = asProblem(error);
  console.error(`${type}: ${message}`);
  process.exitCode = 1;
}
