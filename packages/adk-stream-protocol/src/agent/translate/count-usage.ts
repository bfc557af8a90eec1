import type { GenerateContentResponseUsageMetadata } from '@google/genai'

import type { Usage } from '../../protocol/message.ts'

/** The tokens of finished model calls and of the current one. */
export interface UsageCount {
  readonly finished: Usage
  readonly current: Usage | undefined
}

const ZERO: Usage = { inputTokens: 0, outputTokens: 0, totalTokens: 0 }

export const NO_USAGE: UsageCount = { finished: ZERO, current: undefined }

/**
 * Adds a usage report. Gemini repeats the running total in each chunk of a model call, so a report replaces the
 * previous one (CH7). A report with a different prompt size or a smaller total starts the next call, because the
 * prompt of a later call contains all earlier ones.
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

/** Returns the tokens of the whole turn. Returns undefined if the model reported none. */
export function totalUsage({ finished, current }: UsageCount): Usage | undefined {
  return current && add(finished, current)
}

// Gemini Live reports `responseTokenCount` where generateContent reports `candidatesTokenCount`. genai only types the
// latter.
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
