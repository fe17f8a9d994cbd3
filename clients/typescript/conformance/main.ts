/**
 * Answers calls of spec/vectors: one JSON object a line in, one a line out (section 14).
 *
 * usage: tsx conformance/main.ts
 */

import { createInterface } from "node:readline";
import { readJson } from "../src/wire/json-reading.ts";
import { Problem } from "../src/wire/problems.ts";
import { CALLS } from "./calls.ts";
import type { Input } from "./inputs.ts";
import { writeJson } from "./json.ts";

interface Request {
  readonly call: string;
  readonly input: Input;
}

async function answer({ call, input }: Request): Promise<object> {
  const known = Object.hasOwn(CALLS, call) ? CALLS[call] : undefined;
  if (!known) return { unknown: call };
  try {
    return { output: await known(input) };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return { problem: error.type };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${writeJson(await answer(readJson(line) as Request))}\n`);
}
