import type { GenerateContentResponseUsageMetadata } from '@google/genai'

import type { Usage } from '../../protocol/message.ts'

/** Tokens of the model calls that are over, and of the one under way. */
export interface UsageCount {
  readonly finished: Usage
  readonly current: Usage | undefined
}

const ZERO: Usage = { inputTokens: 0, outputTokens: 0, totalTokens: 0 }

export const NO_USAGE: UsageCount = { finished: ZERO, current: undefined }

/**
 * Takes in one report. Gemini repeats the running total on every piece of one model call, so a report replaces the one before it
 * (CH7). A report with another prompt, or with a smaller total, is the first of the next call: the prompt of a later call holds
 * all of the earlier ones.
 */
export function countUsage(
  count: UsageCount,
  report: GenerateContentResponseUsageMetadata,
): UsageCount {
  const next = readUsage(report)
  const { current } = count
  const sameCall =
    current === undefined ||
    (next.inputTokens === current.inputTokens && next.outputTokens >= current.outputTokens)
  return {
    finished: sameCall ? count.finished : add(count.finished, current),
    current: next,
  }
}

/** The tokens of the whole turn, or nothing when the model reported none. */
export function totalUsage({ finished, current }: UsageCount): Usage | undefined {
  return current && add(finished, current)
}

// Live reports `responseTokenCount` where generateContent reports `candidatesTokenCount`; genai types only the latter.
type Report = GenerateContentResponseUsageMetadata & { responseTokenCount?: number }

function readUsage(report: Report): Usage {
  const inputTokens = (report.promptTokenCount ?? 0) + (report.toolUsePromptTokenCount ?? 0)
  const reasoningTokens = report.thoughtsTokenCount
  const answerTokens = report.candidatesTokenCount ?? report.responseTokenCount ?? 0
  const outputTokens = answerTokens + (reasoningTokens ?? 0)
  return {
    inputTokens,
    outputTokens,
    totalTokens: report.totalTokenCount ?? inputTokens + outputTokens,
    ...(reasoningTokens !== undefined && { reasoningTokens }),
    ...(report.cachedContentTokenCount !== undefined && {
      cachedInputTokens: report.cachedContentTokenCount,
    }),
  }
}

function add(a: Usage, b: Usage): Usage {
  const reasoningTokens = addOptional(a.reasoningTokens, b.reasoningTokens)
  const cachedInputTokens = addOptional(a.cachedInputTokens, b.cachedInputTokens)
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    totalTokens: a.totalTokens + b.totalTokens,
    ...(reasoningTokens !== undefined && { reasoningTokens }),
    ...(cachedInputTokens !== undefined && { cachedInputTokens }),
  }
}

function addOptional(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined && b === undefined ? undefined : (a ?? 0) + (b ?? 0)
}
