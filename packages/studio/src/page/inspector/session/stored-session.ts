import { z } from 'zod'

import type { PricedCall } from '../cost.ts'

const Part = z.looseObject({
  text: z.string().optional(),
  functionCall: z.looseObject({ name: z.string().optional() }).optional(),
  functionResponse: z.looseObject({ name: z.string().optional() }).optional(),
})

const Usage = z.looseObject({
  promptTokenCount: z.number().optional(),
  candidatesTokenCount: z.number().optional(),
  thoughtsTokenCount: z.number().optional(),
})

/** An event as ADK stores it. Everything that is not named here is kept. */
export const StoredEvent = z.looseObject({
  id: z.string(),
  author: z.string().optional(),
  timestamp: z.number(),
  content: z.looseObject({ parts: z.array(Part).optional() }).nullish(),
  usageMetadata: Usage.nullish(),
  modelVersion: z.string().nullish(),
})
export type StoredEvent = z.infer<typeof StoredEvent>

/** The session of a chat, as `GET /chats/:chatId/session` returns it. */
export const StoredSession = z.looseObject({
  id: z.string(),
  state: z.record(z.string(), z.unknown()),
  events: z.array(StoredEvent),
})
export type StoredSession = z.infer<typeof StoredSession>

/** What an event contains, in short: a text, or the names of calls and responses. */
export interface EventSummary {
  readonly text: string
  readonly calls: readonly string[]
  readonly responses: readonly string[]
}

/** Returns what an event contains, in short. */
export function summarizeEvent({ content }: StoredEvent): EventSummary {
  const parts = content?.parts ?? []
  return {
    text: parts.map(({ text = '' }) => text).join(''),
    calls: parts.flatMap(({ functionCall }) => functionCall?.name ?? []),
    responses: parts.flatMap(({ functionResponse }) => functionResponse?.name ?? []),
  }
}

/** The tokens of all model calls of a session. */
export interface TokenTotals {
  readonly input: number
  readonly output: number
}

/** Returns the tokens of all events. */
export function countTokens(events: readonly StoredEvent[]): TokenTotals {
  return events.reduce<TokenTotals>(
    ({ input, output }, { usageMetadata: usage }) => ({
      input: input + (usage?.promptTokenCount ?? 0),
      output: output + (usage?.candidatesTokenCount ?? 0) + (usage?.thoughtsTokenCount ?? 0),
    }),
    { input: 0, output: 0 },
  )
}

/** Returns the model calls of a session, as far as they have reported their tokens. */
export function readModelCalls(events: readonly StoredEvent[]): PricedCall[] {
  return events.flatMap((event) => {
    if (!event.usageMetadata) return []
    const { input, output } = countTokens([event])
    const { author: agent, modelVersion } = event
    return [
      {
        agent,
        model: modelVersion ?? undefined,
        usage: { inputTokens: input, outputTokens: output },
      },
    ]
  })
}

/** Longer texts, such as pictures, are shortened on the screen. An exported file has them whole. */
const MAX_TEXT = 2_000

/** Writes a value as JSON for the screen. */
export function toShortJson(value: unknown): string {
  return JSON.stringify(
    value,
    (_key, each: unknown) =>
      typeof each === 'string' && each.length > MAX_TEXT
        ? `${each.slice(0, MAX_TEXT)}… (${each.length})`
        : each,
    2,
  )
}
