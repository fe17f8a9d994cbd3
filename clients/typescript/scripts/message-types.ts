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

/** A message as it is written into a module. */
export function literalOf(spec: MessageSpec): string {
  const { stage, kind, version, role, arrays, values } = spec;
  return JSON.stringify({ stage, kind, version, role, arrays, values });
}

/** How the constant of a message is called. */
export function constantOf({ stage, kind, role }: MessageSpec): string {
  return [stage, kind, role].join("_").replaceAll("-", "_").toUpperCase();
}

/** One interface per message; messages of one name and fields share it. */
export function typesOf(messages: readonly MessageSpec[]): string {
  const found = new Map<string, string>();
  for (const message of messages) {
    const fields = fieldsOf(message);
    const short = pascal(message.stage) + pascal(message.kind);
    const isTaken = (found.get(short) ?? fields) !== fields;
    found.set(isTaken ? short + pascal(message.role) : short, fields);
  }
  return [...found]
    .map(([name, fields]) => `export interface ${name} {${fields}}`)
    .join("\n\n");
}

function fieldsOf({ kind, arrays, values }: MessageSpec): string {
  const { properties = {}, $defs = {} } = values as Schema;
  const lines = [`readonly kind: ${JSON.stringify(kind)};`];
  for (const [name, schema] of Object.entries(properties)) {
    lines.push(`readonly ${name}: ${typeOf(schema, $defs)};`);
  }
  for (const { name, dtype } of arrays)
    lines.push(`readonly ${name}: ${ARRAYS[dtype]};`);
  return lines.join("\n");
}

function typeOf(schema: Schema, defs: Readonly<Record<string, Schema>>): string {
  const inner = (each: Schema) => typeOf(each, defs);
  if (schema.$ref) return inner(defs[schema.$ref.replace("#/$defs/", "")]!);
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
