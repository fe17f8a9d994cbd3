/** The party of `dummy`: a word to the next slot and its echo, and the number of rows. */

import {
  MESSAGES,
  VERSION,
  type CountConfirm,
  type CountCounted,
  type CountConfirmed,
  type CountLabels,
  type CountWord,
  type GreetingGreeted,
  type GreetingWord,
} from "../generated/dummy.ts";
import { paramsOf, type Terms } from "../roster/terms.ts";
import type { PartyContext, PeerMessage, Reply, Role } from "../session/contract.ts";
import type { Protocol } from "../session/engine.ts";
import { ints, numbers, words } from "../wire/arrays.ts";
import type { Message } from "../wire/messages.ts";
import { refuse } from "../wire/problems.ts";
import { checkParams } from "./params.ts";

interface HeardWord {
  readonly sender: string;
  readonly word: bigint;
}

export function dummy(terms: Terms): Protocol {
  checkParams(paramsOf(terms), { n_clusters: "any", void_attempts: "any" });
  return { version: VERSION, messages: MESSAGES, stages: () => STAGES };
}

const greeter: Role = {
  reply(context): Reply {
    const word = context.stream("word").words(1);
    const { slots, slot } = context;
    const next = slots[(slots.indexOf(slot) + 1) % slots.length]!;
    const content: GreetingWord = { kind: "word", word: words(word) };
    const contribution: GreetingGreeted = { kind: "greeted" };
    return {
      contribution,
      envelopes: next === slot ? [] : [{ peer: next, content }],
      remember: { "own-word": word[0] },
    };
  },
  receive(_, envelopes: readonly PeerMessage[]) {
    const { peer, content } = envelopes[0]!;
    const heard: HeardWord = { sender: peer, word: wordIn(content) };
    return { "heard-word": heard };
  },
};

const counter: Role = {
  reply(context, task: Message, table): Reply {
    if (task.kind === "confirm") return confirm(context, task as CountConfirm);
    const positions = ints([...table.rows.keys()]);
    const contribution: CountCounted = { kind: "counted", positions };
    if (context.slots.length === 1) return { contribution };
    const { sender, word } = context.recall<HeardWord>("heard-word");
    const content: CountWord = { kind: "word", word: words(BigUint64Array.of(word)) };
    return { contribution, envelopes: [{ peer: sender, content }] };
  },
  receive(context, envelopes) {
    const own = context.recall<bigint>("own-word");
    if (envelopes.some(({ content }) => wordIn(content) !== own)) {
      refuse("protocol-failed", "The echo differs from the word that this party sent.");
    }
    return {};
  },
  conclude(_, result) {
    return { labels: numbers((result as CountLabels).labels) };
  },
};

function confirm(context: PartyContext, { total }: CountConfirm): Reply {
  // of each row group one line counts
  const groups = new Map<number, number>();
  for (const { name, row } of context.agreement.terms.layout.slots) {
    groups.set(row, context.member(name).n_rows);
  }
  const rows = [...groups.values()].reduce((sum, each) => sum + each, 0);
  if (total !== rows) {
    refuse("protocol-failed", "The analyst counts other rows than the parties have.");
  }
  const contribution: CountConfirmed = { kind: "confirmed", total };
  return { contribution };
}

function wordIn(content: Message): bigint {
  return (content as CountWord).word.data[0]!;
}

const STAGES = [
  {
    name: "greeting",
    exchanges: [{ task: "greet", answer: "greeted" }],
    envelopes: ["word"],
    role: greeter,
  },
  {
    name: "count",
    exchanges: [
      { task: "count", answer: "counted" },
      { task: "confirm", answer: "confirmed" },
    ],
    envelopes: ["word"],
    results: ["labels"],
    resultsTo: "row" as const,
    role: counter,
  },
];
