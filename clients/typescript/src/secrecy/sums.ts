/** Masked, checked sums: the analyst adds up what it cannot read (spec, section 10). */

import { hexDigest, lengthPrefixed } from "../wire/bytes.ts";
import { refuse } from "../wire/problems.ts";
import type { WordSource } from "./chance.ts";
import { drawResidue, P, residueOf, tagOf } from "./field.ts";
import { signedOf } from "./fixed-point.ts";

/** Members in the order of slots, the first of which leads; what is added up, when. */
export interface Sum {
  readonly members: readonly string[];
  readonly name: string;
  readonly transcript: string;
}

/** A member's random streams: shared with one peer, and with its whole group. */
export interface SumMember {
  readonly slot: string;
  /** All slots of the session, in order. */
  readonly slots: readonly string[];
  pairStream(peer: string, ...labels: string[]): WordSource;
  groupStream(purpose: string): WordSource;
}

const LEAST_MEMBERS = 3;
const LARGEST_WORD = 2 ** 60;

/** A text (hex) that differs for any two sums of a session. */
export function labelOf({ transcript, name, members }: Sum): string {
  return hexDigest(lengthPrefixed(transcript, name, ...members));
}

/** A member's share: hidden words, then a hidden tag. Fewer members are refused. */
export function share(
  words: BigUint64Array,
  sum: Sum,
  member: SumMember,
  leastMembers: number = LEAST_MEMBERS,
): BigUint64Array {
  checkMembers(sum.members, member, leastMembers);
  const label = labelOf(sum);
  const hidden = words.slice();
  let tag = tagOf(hidden, member.groupStream(`tag/${label}`));
  if (sum.members[0] === member.slot) {
    addStream(hidden, member.groupStream(`blind/${label}`), 1n);
    tag = residueOf(tag + drawResidue(member.groupStream(`blind-tag/${label}`)));
  }
  for (const { sign, stream } of pairStreams(sum, member)) {
    addStream(hidden, stream, sign);
    tag = residueOf(tag + sign * drawResidue(stream));
  }
  const shared = new BigUint64Array(hidden.length + 1);
  shared.set(hidden);
  shared[hidden.length] = tag;
  return shared;
}

/** Hides a member's words in place, where nobody but the analyst reads the total. */
export function mask(
  words: BigUint64Array,
  sum: Sum,
  member: SumMember,
  leastMembers: number,
): void {
  checkMembers(sum.members, member, leastMembers);
  for (const { sign, stream } of pairStreams(sum, member)) {
    addStream(words, stream, sign);
  }
}

/**
 * The words of a total; throws `protocol-failed` if it is not the members' sum.
 *
 * A wrong range and a wrong tag give one error, which reveals nothing about the sum.
 */
export function readTotal(
  total: BigUint64Array,
  sum: Sum,
  member: SumMember,
  fits: (words: BigUint64Array) => boolean,
): BigUint64Array {
  const label = labelOf(sum);
  const words = total.slice(0, -1);
  const told = total[total.length - 1] ?? P;
  addStream(words, member.groupStream(`blind/${label}`), -1n);
  const shift = drawResidue(member.groupStream(`blind-tag/${label}`));
  const isSmall = words.every((word) => Math.abs(signedOf(word)) < LARGEST_WORD);
  const isTagged = () =>
    residueOf(told - shift) === tagOf(words, member.groupStream(`tag/${label}`));
  if (!isSmall || told >= P || !fits(words) || !isTagged()) {
    refuse("protocol-failed", "A total is not the sum of the members' shares.");
  }
  return words;
}

/** Refuses members whose sum would not hide this one. */
export function checkMembers(
  members: readonly string[],
  { slot, slots }: Pick<SumMember, "slot" | "slots">,
  least: number,
): void {
  const known = slots.filter((each) => members.includes(each));
  if (members.join() !== known.join() || !known.includes(slot)) {
    refuse(
      "guard-refused",
      "The analyst's list of members is wrong, or lacks this party.",
    );
  }
  if (known.length < least) {
    refuse("guard-refused", `A masked sum has at least ${least} members.`);
  }
}

/** A stream for each other member: the earlier slot of a pair adds it. */
function pairStreams(sum: Sum, member: SumMember) {
  const { slot, slots } = member;
  const label = labelOf(sum);
  const peers = sum.members.filter((each) => each !== slot);
  return peers.map((peer) => ({
    sign: slots.indexOf(peer) > slots.indexOf(slot) ? 1n : -1n,
    stream: member.pairStream(peer, "coterie/mask/2", label),
  }));
}

function addStream(words: BigUint64Array, stream: WordSource, sign: bigint): void {
  // an array of this type keeps 64 bits of what it is given
  stream.words(words.length).forEach((drawn, place) => {
    words[place] = words[place]! + sign * drawn;
  });
}
