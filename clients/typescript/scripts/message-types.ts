/** TypeScript types of messages, from the tables of an analyst. */

import type { MessageSpec } from "../src/wire/messages.ts";

export interface Table {
  readonly protocol: string;
  readonly version: number;
  readonly messages: readonly MessageSpec[];
}

interface Schema {
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, Schema>>;
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
}

const ARRAYS: Readonly<Record<string, string>> = {
  float64: "Floats",
  int64: "Ints",
  uint64: "Words",
  uint8: "Bytes",
};

/** The messages that several protocols have alike, by what is written of each. */
export function sharedBy(tables: readonly Table[]): Map<string, MessageSpec> {
  const seen = new Set<string>();
  const shared = new Map<string, MessageSpec>();
  for (const spec of tables.flatMap(({ messages }) => messages)) {
    const text = literalOf(spec);
    if (seen.has(text)) shared.set(text, spec);
    seen.add(text);
  }
  return shared;
}

/** Definitions that all schemas have alike, as JSON by name. */
export function definitionsOf(tables: readonly Table[]): ReadonlyMap<string, string> {
  const found = new Map<string, Set<string>>();
  for (const { values } of tables.flatMap(({ messages }) => messages)) {
    for (const [name, schema] of Object.entries((values as Schema).$defs ?? {})) {
      found.set(name, (found.get(name) ?? new Set()).add(JSON.stringify(schema)));
    }
  }
  const alike = [...found].filter(([, texts]) => texts.size === 1);
  return new Map(alike.map(([name, [text]]) => [name, text!]));
}

/** A message, with the names of shared definitions in their place. */
export function writtenOf(
  spec: MessageSpec,
  definitions: ReadonlyMap<string, string>,
): string {
  return [...definitions].reduce(
    (text, [name, json]) =>
      text.replaceAll(`"${name}":${json}`, `${name}: ${constantOfDefinition(name)}`),
    literalOf(spec),
  );
}

/** How the constant of a definition is called. */
export function constantOfDefinition(name: string): string {
  return name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
}

/** The interface of a definition. */
export function typeOfDefinition(name: string, json: string): string {
  return `export interface ${name} ${typeOf(JSON.parse(json) as Schema, new Set())}`;
}

/** What tells a message from all others. */
export function literalOf(spec: MessageSpec): string {
  const { stage, kind, version, role, arrays, values } = spec;
  return JSON.stringify({ stage, kind, version, role, arrays, values });
}

/** How the constant of a message is called. */
export function constantOf({ stage, kind, role }: MessageSpec): string {
  return [stage, kind, role].join("_").replaceAll("-", "_").toUpperCase();
}

/** One interface per message; messages of one name and fields share it. */
export function typesOf(
  messages: readonly MessageSpec[],
  definitions: ReadonlySet<string>,
): string {
  const found = new Map<string, string>();
  for (const message of messages) {
    const fields = fieldsOf(message, definitions);
    const short = pascal(message.stage) + pascal(message.kind);
    const isTaken = (found.get(short) ?? fields) !== fields;
    found.set(isTaken ? short + pascal(message.role) : short, fields);
  }
  return [...found]
    .map(([name, fields]) => `export interface ${name} {${fields}}`)
    .join("\n\n");
}

function fieldsOf(
  { kind, arrays, values }: MessageSpec,
  definitions: ReadonlySet<string>,
): string {
  const { properties = {}, $defs = {} } = values as Schema;
  const lines = [`readonly kind: ${JSON.stringify(kind)};`];
  for (const [name, schema] of Object.entries(properties)) {
    lines.push(`readonly ${name}: ${typeOf(schema, definitions, $defs)};`);
  }
  for (const { name, dtype } of arrays)
    lines.push(`readonly ${name}: ${ARRAYS[dtype]};`);
  return lines.join("\n");
}

function typeOf(
  schema: Schema,
  definitions: ReadonlySet<string>,
  defs: Readonly<Record<string, Schema>> = {},
): string {
  const inner = (each: Schema) => typeOf(each, definitions, defs);
  if (schema.$ref) {
    const name = schema.$ref.replace("#/$defs/", "");
    return definitions.has(name) ? name : inner(defs[name]!);
  }
  if (schema.anyOf) return schema.anyOf.map(inner).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((each) => JSON.stringify(each)).join(" | ");
  switch (schema.type) {
    case "integer":
    case "number":
      return "number";
    case "string":
    case "boolean":
    case "null":
      return schema.type;
    case "array":
      return `readonly (${schema.items ? inner(schema.items) : "unknown"})[]`;
    default:
      return objectType(schema, inner);
  }
}

function objectType(schema: Schema, inner: (each: Schema) => string): string {
  const { properties, additionalProperties: more } = schema;
  if (properties) {
    const fields = Object.entries(properties).map(
      ([name, each]) => `readonly ${name}: ${inner(each)};`,
    );
    return `{ ${fields.join(" ")} }`;
  }
  return `Readonly<Record<string, ${typeof more === "object" ? inner(more) : "unknown"}>>`;
}

function pascal(name: string): string {
  return name.replaceAll(/(?:^|-)(\w)/g, (_, letter: string) => letter.toUpperCase());
}
