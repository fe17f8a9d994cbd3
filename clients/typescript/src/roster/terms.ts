/** The terms of a session: what a party agrees to when it joins. */

import { hexDigest } from "../wire/bytes.ts";
import { readObject } from "../wire/json-reading.ts";
import { refuse } from "../wire/problems.ts";
import type { Invitation } from "./invitation.ts";

export interface Slot {
  readonly name: string;
  readonly row: number;
  readonly column: number;
}

export type Audience = "all" | "row" | "column" | "slot";

/** A column in the dictionary of a column group (Table Schema). */
export interface Field {
  readonly name: string;
  readonly type?: string;
  readonly role?: string;
  readonly constraints?: {
    readonly minimum?: number | string | null;
    readonly maximum?: number | string | null;
  };
}

/** Several numbers of clusters, ascending, and by which figure one of them is chosen. */
export interface Evaluation {
  readonly n_clusters: readonly number[];
  readonly choose?: string;
}

export interface Terms {
  readonly text: string;
  readonly digest: string;
  readonly coterie: number;
  readonly session: string;
  readonly seed: number | bigint;
  readonly protocol: {
    readonly name: string;
    readonly version: number;
    /** Those other than defaults; unset if there are none. */
    readonly params?: Readonly<Record<string, unknown>>;
  };
  readonly layout: { readonly slots: readonly Slot[] };
  readonly identities?: {
    readonly coordinator?: string | null;
    readonly analyst?: string | null;
    readonly slots?: Readonly<Record<string, string>>;
  };
  readonly guards: { readonly minimum_rows: number };
  readonly evaluation?: Evaluation;
  /** What columns mean, of each column group. */
  readonly dictionary?: readonly { readonly fields: readonly Field[] }[];
  readonly risks: readonly string[];
}

/** Sections of terms that this client reads; others change what a party does. */
const KNOWN_SECTIONS = new Set([
  ...["coterie", "session", "about", "protocol", "layout", "identities", "seed"],
  ...["dictionary", "evaluation", "deadlines", "guards", "risks", "retention"],
]);
const TERMS_VERSION = 2;

/** The terms in a text; refuses those that change what a party of this client does. */
export function readTerms(text: string): Terms {
  const fields = readObject(text);
  if (fields["coterie"] !== TERMS_VERSION) {
    refuse(
      "version-mismatch",
      "The terms have another version than this client reads.",
    );
  }
  const unknown = Object.keys(fields).filter((name) => !KNOWN_SECTIONS.has(name));
  if (unknown.length) {
    refuse(
      "invalid-parameters",
      `This client does not read: ${unknown.join(", ")}. Take part with 'coterie party run'.`,
    );
  }
  // the coordinator signed them, and the analyst checked their form
  return { ...(fields as unknown as Terms), text, digest: hexDigest(text) };
}

/** The terms that the analyst shows; refuses others than the coordinator signed. */
export function readShownTerms(text: string, invitation: Invitation): Terms {
  if (hexDigest(text) !== invitation.terms) {
    refuse(
      "agreement-mismatch",
      "The analyst shows other terms than the coordinator signed.",
    );
  }
  const terms = readTerms(text);
  if (terms.session !== invitation.session) {
    refuse("agreement-mismatch", "The analyst previews another session.");
  }
  if (terms.identities?.coordinator !== invitation.coordinator) {
    refuse(
      "agreement-mismatch",
      "The terms name another coordinator than the invitation.",
    );
  }
  return terms;
}

export function paramsOf({ protocol }: Terms): Readonly<Record<string, unknown>> {
  return protocol.params ?? {};
}

export function slotNames(terms: Terms): readonly string[] {
  return terms.layout.slots.map(({ name }) => name);
}

/** The groups of slots that receive the same task, in order. */
export function audiences(terms: Terms, audience: Audience): readonly string[][] {
  const groups = new Map<string | number, string[]>();
  for (const slot of terms.layout.slots) {
    const group =
      audience === "all" ? 0 : slot[audience === "slot" ? "name" : audience];
    groups.set(group, [...(groups.get(group) ?? []), slot.name]);
  }
  const sorted = [...groups.entries()];
  if (audience !== "slot") sorted.sort(([a], [b]) => Number(a) - Number(b));
  return sorted.map(([, slots]) => slots);
}

/** The slots of a slot's row or column group, in order; the first one leads. */
export function groupOf(
  terms: Terms,
  slot: string,
  scope: "row" | "column",
): readonly string[] {
  return audiences(terms, scope).find((group) => group.includes(slot))!;
}
