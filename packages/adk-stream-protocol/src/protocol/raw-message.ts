import { z } from 'zod'

import { isRecord } from './guards.ts'

/**
 * An array of anything. zod looks at every element of `z.array`, and keeps an issue for each wrong one: a body of 8 MiB could make
 * it do so for half a minute. What counts is checked element by element, after it was counted.
 */
export const UncheckedArray = z.custom<readonly unknown[]>(Array.isArray, {
  message: 'Invalid input: expected an array',
})

/** An object with any fields, for the same reason. */
export const UncheckedObject = z.custom<Readonly<Record<string, unknown>>>(isRecord, {
  message: 'Invalid input: expected an object',
})

/** A message as a client sends it, with parts that nothing has looked at yet. */
export const RawMessage = z.object({
  id: z.string().max(128).optional(),
  role: z.string(),
  parts: UncheckedArray.optional(),
  content: z.union([z.string(), UncheckedArray]).optional(),
  metadata: z.unknown().optional(),
})
export type RawMessage = z.infer<typeof RawMessage>

/** A part of a message, as far as its type tells what it is. */
export interface RawPart extends Readonly<Record<string, unknown>> {
  readonly type: string
}

/** The parts of a message; none of one that is a text alone. */
export function partsOf({ parts, content = [] }: RawMessage): readonly unknown[] {
  return parts ?? (typeof content === 'string' ? [] : content)
}

export function isRawPart(part: unknown): part is RawPart {
  return isRecord(part) && typeof part['type'] === 'string'
}
