/** Streams of one party, and of a pair of parties (spec, section 2). */

import { unhex } from "../wire/bytes.ts";
import { derive, KeyedStream } from "./chance.ts";
import { exchange } from "./keys.ts";

export interface Place {
  readonly session: string;
  readonly slot: string;
  readonly stage: string;
}

/** A party's own stream for one purpose, of one attempt, or of all if none is given. */
export function ownStream(
  entropy: Uint8Array,
  { session, slot, stage }: Place,
  purpose: string,
  transcript = "",
): KeyedStream {
  const labels = transcript
    ? ["coterie/draw/2", transcript, purpose]
    : ["coterie/lasting-draw/1", purpose];
  return new KeyedStream(derive(entropy, [...labels, session, slot, stage]));
}

/**
 * The stream of random numbers that two parties share in one attempt.
 *
 * @param pair both slots, the earlier one first
 */
export function pairStream(
  own: Uint8Array,
  peer: string,
  transcript: string,
  pair: readonly string[],
  labels: readonly string[],
): KeyedStream {
  const info = ["coterie/pair/3", ...pair, ...labels];
  return new KeyedStream(derive(exchange(own, peer), info, unhex(transcript)));
}
