import { z } from 'zod'

import { isRecord } from './guards.ts'

/**
 * An array with unchecked elements. `z.array` checks each element and keeps an issue for each invalid one, which can
 * take half a minute for a body of 8 MiB. The elements are counted first and then checked one by one.
 */
export const UncheckedArray = z.custom<readonly unknown[]>(Array.isArray, {
  message: 'Invalid input: expected an array',
})

/** An object with unchecked fields, for the same reason. */
export const UncheckedObject = z.custom<Readonly<Record<string, unknown>>>(isRecord, {
  message: 'Invalid input: expected an object',
})

/** A message from a client with unchecked parts. */
export const RawMessage = z.object({
  id: z.string().max(128).optional(),
  role: z.string(),
  parts: UncheckedArray.optional(),
  content: z.union([z.string(), UncheckedArray]).optional(),
  metadata: z.unknown().optional(),
})
export type RawMessage = z.infer<typeof RawMessage>

/** Describes the first issue of client input with its path. `whole` names the input, for an issue of the input itself. */
export function describeIssue({ issues: [issue] }: z.ZodError, whole: string): string {
  const path = issue?.path.join('.') ?? ''
  return `${path === '' ? whole : path}: ${issue?.message ?? 'unexpected shape'}`
}

/** A message part of which only the type has been checked. */
export interface RawPart extends Readonly<Record<string, unknown>> {
  readonly type: string
}

/** Returns the parts of a message. A message that is just text has none. */
export function partsOf({ parts, content = [] }: RawMessage): readonly unknown[] {
  return parts ?? (typeof content === 'string' ? [] : content)
}

export function isRawPart(part: unknown): part is RawPart {
  return isRecord(part) && typeof part['type'] === 'string'
}
