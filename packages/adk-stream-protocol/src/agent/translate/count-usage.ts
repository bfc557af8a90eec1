import type { GenerateContentResponseUsageMetadata, Blob, Part } from '@google/genai'

import type { Usage, AudioCount, DataParts } from '../../protocol/message.ts'

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

const PCM = /^audio\/(?:pcm|l16)\b/i
const PCM_RATE = /rate=(\d+)/i
const BYTES_PER_SAMPLE = 2

/** Whether a media type is raw PCM audio. */
export function isPcm(mimeType: string): boolean {
  return PCM.test(mimeType)
}

/** Returns PCM audio as clients receive it. Returns undefined for any other type. */
export function toPcm({ mimeType = '', data = '' }: Blob): DataParts['pcm'] | undefined {
  if (!isPcm(mimeType)) return undefined
  const sampleRate = Number(PCM_RATE.exec(mimeType)?.[1] ?? 24_000)
  return { content: data, sampleRate, channels: 1, bitDepth: 16 }
}

/** Adds PCM audio to the count of a message. */
export function countAudio(
  { chunks, bytes }: Pick<AudioCount, 'chunks' | 'bytes'> = { chunks: 0, bytes: 0 },
  { content, sampleRate }: DataParts['pcm'],
): AudioCount {
  const total = bytes + base64Length(content)
  const seconds = total / (sampleRate * BYTES_PER_SAMPLE)
  return { chunks: chunks + 1, bytes: total, seconds, sampleRate }
}

/** Adds all PCM audio in the parts of an event. */
export function countSpeech(
  count: AudioCount | undefined,
  parts: readonly Part[],
): AudioCount | undefined {
  return parts.reduce((total, { inlineData }) => {
    const pcm = inlineData && toPcm(inlineData)
    return pcm ? countAudio(total, pcm) : total
  }, count)
}

/** Returns the number of bytes that a base64 text encodes. */
function base64Length(text: string): number {
  const padding = text.endsWith('==') ? 2 : Number(text.endsWith('='))
  return (text.length / 4) * 3 - padding
}
