/**
 * Writes src/generated: types and tables of the messages of all protocols here, and in
 * shared.ts those that several of them have.
 *
 * usage: tsx scripts/generate.ts URL                from an analyst
 *        tsx scripts/generate.ts --check FILE...    from answers of an analyst that were
 *                                                   kept as files, one for each protocol
 */

import fs from "node:fs";
import path from "node:path";
import { format } from "prettier";
import type { MessageSpec } from "../src/wire/messages.ts";
import {
  constantOf,
  constantOfDefinition,
  definitionsOf,
  literalOf,
  sharedBy,
  typeOfDefinition,
  typesOf,
  writtenOf,
  type Table,
} from "./message-types.ts";

const ARRAY_TYPES = ["Bytes", "Floats", "Ints", "Words"];
const PROTOCOLS = ["dummy", "dc", "llf"];
const FOLDER = path.join(import.meta.dirname, "..", "src", "generated");
const PRETTIER = path.join(import.meta.dirname, "..", ".prettierrc.json");

type Definitions = ReadonlyMap<string, string>;

/** The text of each file, by its name. */
async function filesOf(tables: readonly Table[]): Promise<Map<string, string>> {
  const shared = sharedBy(tables);
  const definitions = definitionsOf(tables);
  const files = new Map([
    ["shared.ts", await written(sharedModule(shared, definitions))],
  ]);
  for (const table of tables) {
    const text = moduleOf(table, shared, definitions);
    files.set(`${table.protocol}.ts`, await written(text));
  }
  return files;
}

function sharedModule(
  shared: ReadonlyMap<string, MessageSpec>,
  definitions: Definitions,
): string {
  const specs = [...shared.values()];
  const types = [...definitions].map(([name, json]) => typeOfDefinition(name, json));
  const constants = [
    ...[...definitions].map(
      ([name, json]) => `export const ${constantOfDefinition(name)} = ${json};`,
    ),
    ...specs.map(
      (spec) =>
        `export const ${constantOf(spec)}: MessageSpec = ${writtenOf(spec, definitions)};`,
    ),
  ];
  return `/** Messages of several protocols. Written by scripts/generate.ts. */

${importsFor(specs, definitions)}
${types.join("\n\n")}

${constants.join("\n\n")}
`;
}

function moduleOf(
  table: Table,
  shared: ReadonlyMap<string, MessageSpec>,
  definitions: Definitions,
): string {
  const isShared = (spec: MessageSpec) => shared.has(literalOf(spec));
  const items = table.messages.map((spec) =>
    isShared(spec) ? constantOf(spec) : writtenOf(spec, definitions),
  );
  const own = table.messages.filter((spec) => !isShared(spec));
  const types = importsFor(own, definitions);
  const used = [...definitions.keys()].flatMap((name) => [
    ...(types.includes(`: ${name}`) ? [`type ${name}`] : []),
    ...(items.join().includes(constantOfDefinition(name))
      ? [constantOfDefinition(name)]
      : []),
  ]);
  const names = [...table.messages.filter(isShared).map(constantOf), ...used];
  return `/** Messages of ${table.protocol}. Written by scripts/generate.ts. */

import { ${names.join(", ")} } from "./shared.ts";
${types}
export const VERSION = ${table.version};

export const MESSAGES: readonly MessageSpec[] = [${items.join(", ")}];
`;
}

/** What types of messages need, and these types. */
function importsFor(specs: readonly MessageSpec[], definitions: Definitions): string {
  const types = typesOf(specs, new Set(definitions.keys()));
  const used = ARRAY_TYPES.filter((name) => types.includes(`: ${name};`));
  return `import type { ${used.join(", ")} } from "../wire/arrays.ts";
import type { MessageSpec } from "../wire/messages.ts";

${types}
`;
}

async function written(text: string): Promise<string> {
  const options = JSON.parse(fs.readFileSync(PRETTIER, "utf8")) as object;
  return format(text, { ...options, parser: "typescript" });
}

async function fetched(url: string, protocol: string): Promise<Table> {
  const response = await fetch(`${url}/v1/protocols/${protocol}/messages`);
  if (!response.ok) throw new Error(`${protocol}: HTTP status ${response.status}`);
  return (await response.json()) as Table;
}

async function check(kept: readonly string[]): Promise<boolean> {
  const tables = kept.map((file) => JSON.parse(fs.readFileSync(file, "utf8")) as Table);
  const inOrder = PROTOCOLS.flatMap((name) =>
    tables.filter(({ protocol }) => protocol === name),
  );
  const files = [...(await filesOf(inOrder))];
  const other = files.filter(
    ([name, text]) => fs.readFileSync(path.join(FOLDER, name), "utf8") !== text,
  );
  for (const [name] of other)
    console.error(
      `src/generated/${name}: run npm run generate -- URL, with an analyst of this checkout.`,
    );
  return other.length === 0;
}

const [first, ...rest] = process.argv.slice(2);
if (first === "--check") {
  process.exitCode = (await check(rest)) ? 0 : 1;
} else if (first) {
  const tables = await Promise.all(PROTOCOLS.map((name) => fetched(first, name)));
  for (const [name, text] of await filesOf(tables)) {
    fs.writeFileSync(path.join(FOLDER, name), text);
  }
} else {
  console.error("usage: generate URL | generate --check FILE...");
  process.exitCode = 2;
}
