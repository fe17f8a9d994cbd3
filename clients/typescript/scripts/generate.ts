/**
 * Writes src/generated: types and tables of the messages of several protocols, and in
 * shared.ts those that several of them have. Reads a JSON array of tables, as an analyst
 * serves them, from standard input.
 *
 * usage: tsx scripts/generate.ts [--check] < TABLES
 */

import fs from "node:fs";
import path from "node:path";
import { text } from "node:stream/consumers";
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

const tables = JSON.parse(await text(process.stdin)) as Table[];
for (const [name, content] of await filesOf(tables)) {
  const file = path.join(FOLDER, name);
  if (process.argv[2] !== "--check") {
    fs.writeFileSync(file, content);
  } else if (fs.readFileSync(file, "utf8") !== content) {
    console.error(`src/generated/${name} is not current: run make generated.`);
    process.exitCode = 1;
  }
}
