/**
 * Writes src/generated/PROTOCOL.ts: types and tables of a protocol's messages.
 *
 * usage: tsx scripts/generate.ts URL [PROTOCOL...]      from an analyst
 *        tsx scripts/generate.ts --check FILE...        from answers of an analyst that
 *                                                       were kept as files
 */

import fs from "node:fs";
import path from "node:path";
import { format } from "prettier";
import { typesOf, type Table } from "./message-types.ts";

const ARRAY_TYPES = ["Bytes", "Floats", "Ints", "Words"];
const PROTOCOLS = ["dummy", "dc", "llf"];
const FOLDER = path.join(import.meta.dirname, "..", "src", "generated");
const PRETTIER = path.join(import.meta.dirname, "..", ".prettierrc.json");

async function moduleOf(table: Table): Promise<string> {
  const specs = table.messages.map(
    ({ stage, kind, version, role, arrays, values }) => ({
      stage,
      kind,
      version,
      role,
      arrays,
      values,
    }),
  );
  const types = typesOf(table);
  const used = ARRAY_TYPES.filter((name) => types.includes(`: ${name};`));
  const text = `/** Messages of ${table.protocol}. Written by scripts/generate.ts. */

import type { ${used.join(", ")} } from "../wire/arrays.ts";
import type { MessageSpec } from "../wire/messages.ts";

export const VERSION = ${table.version};

${types}

export const MESSAGES: readonly MessageSpec[] = ${JSON.stringify(specs)};
`;
  const options = JSON.parse(fs.readFileSync(PRETTIER, "utf8")) as object;
  return format(text, { ...options, parser: "typescript" });
}

async function fetched(url: string, protocol: string): Promise<Table> {
  const response = await fetch(`${url}/v1/protocols/${protocol}/messages`);
  if (!response.ok) throw new Error(`${protocol}: HTTP status ${response.status}`);
  return (await response.json()) as Table;
}

async function check(file: string): Promise<boolean> {
  const table = JSON.parse(fs.readFileSync(file, "utf8")) as Table;
  const kept = path.join(FOLDER, `${table.protocol}.ts`);
  const isSame = fs.readFileSync(kept, "utf8") === (await moduleOf(table));
  if (!isSame) console.error(`src/generated/${table.protocol}.ts: write it anew.`);
  return isSame;
}

const [first, ...rest] = process.argv.slice(2);
if (first === "--check") {
  const same = await Promise.all(rest.map(check));
  process.exitCode = same.every(Boolean) ? 0 : 1;
} else if (first) {
  for (const protocol of rest.length ? rest : PROTOCOLS) {
    const written = await moduleOf(await fetched(first, protocol));
    fs.writeFileSync(path.join(FOLDER, `${protocol}.ts`), written);
  }
} else {
  console.error("usage: generate URL [PROTOCOL...] | generate --check FILE...");
  process.exitCode = 2;
}
