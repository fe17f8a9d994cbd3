/** The last stage: all sign what they were told, and read the result of the run that counts. */

import type { ClosingConclude, Figures } from "../generated/shared.ts";
import type { Agreement } from "../roster/roster.ts";
import type { Evaluation } from "../roster/terms.ts";
import { refuse } from "../wire/problems.ts";
import type { PartyContext, Role, Stage } from "./contract.ts";
import { lastStages } from "./runs.ts";
import { CLOSING, signer } from "./signatures.ts";

type Rule = keyof Figures;

/** The name under which a stage remembers the figures that it added up, if any. */
export const FIGURES = "figures";

const CHOSEN = "chosen-run";
const CLOSE = 1e-5; // figures are told in six digits
const ZERO = 1e-12;
const LEAST_IS_BEST: readonly Rule[] = ["davies_bouldin", "xie_beni"];
const USUAL: readonly Rule[] = [
  ...(["simplified_silhouette", "calinski_harabasz", "partition_coefficient"] as const),
];

/** The stage after these, whose task says which run counts. */
export function closingStage(
  stages: readonly Stage[],
  { terms, roster }: Agreement,
  signers: number,
): Stage {
  const lasts = lastStages(stages);
  const { results = [], resultsTo = "all" } = lasts[0]!;
  const least = signers === roster.length ? 1 : 0;
  return {
    name: CLOSING,
    exchanges: [{ task: "conclude", answer: "signed", least }],
    results,
    resultsTo,
    role: roleOf(lasts, terms.evaluation),
  };
}

function roleOf(lasts: readonly Stage[], evaluation: Evaluation | undefined): Role {
  return {
    async reply(context, task, table) {
      const signed = await signer.reply(context, task, table);
      const { figures, chosen } = task as ClosingConclude;
      checkChoice(context, evaluation, figures, chosen);
      return { ...signed, remember: { [CHOSEN]: chosen } };
    },
    conclude(context, result, table) {
      const chosen = (context.memory.get(CHOSEN) as number | undefined) ?? 0;
      const last = lasts[Math.min(chosen, lasts.length - 1)]!;
      return last.role.conclude!(context.within(last), result, table);
    },
  };
}

/** Refuses a choice that is not that of the terms, and figures that are not ours. */
function checkChoice(
  context: PartyContext,
  evaluation: Evaluation | undefined,
  figures: readonly Figures[],
  chosen: number,
): void {
  const runs = evaluation?.n_clusters.length ?? 1;
  if (chosen >= runs || (figures.length && figures.length !== runs)) {
    refuse("protocol-failed", "The analyst reports other runs than the session has.");
  }
  figures.forEach((told, run) => {
    const own = context.recallOfRun<Figures>(run, FIGURES);
    if (own && !agree(own, told)) {
      refuse(
        "protocol-failed",
        "The analyst reports figures that differ from those of this party.",
      );
    }
  });
  if (!evaluation || evaluation.choose === "later") return;
  if (chosen !== bestRun(figures, evaluation.choose ?? "usual")) {
    refuse(
      "protocol-failed",
      "The analyst did not choose the run that the rule selects.",
    );
  }
}

function agree(own: Figures, told: Figures): boolean {
  return (Object.keys(own) as Rule[]).every((name) => {
    const [a, b] = [own[name], told[name]];
    if (typeof a !== "number" || typeof b !== "number") return a === b;
    const most = Math.max(CLOSE * Math.max(Math.abs(a), Math.abs(b)), ZERO);
    return Math.abs(a - b) <= most;
  });
}

/** The run that a figure chooses, among those that have it; of equals the first. */
function bestRun(figures: readonly Figures[], choose: string): number {
  const rules = choose === "usual" ? USUAL : [choose as Rule];
  const rule = rules.find((name) => figures.some((each) => each[name] !== null));
  if (rule === undefined) return 0; // the clusters of all runs coincide
  const sign = LEAST_IS_BEST.includes(rule) ? 1 : -1;
  const values = figures.map((each) => {
    const value = each[rule];
    return typeof value === "number" ? sign * value : Infinity;
  });
  return values.indexOf(Math.min(...values));
}
