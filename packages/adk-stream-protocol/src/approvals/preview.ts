import * as z from 'zod'

import type { Preview, ShownPreview } from '../protocol/preview.ts'
import { digestJson } from './digest.ts'

const Text = z.string().max(20_000)

/** A preview or receipt, as a policy returns it. */
export const PolicyPreview = z.strictObject({
  headline: Text.optional(),
  deed: z.string().max(200).optional(),
  lines: z
    .array(z.strictObject({ label: Text, value: Text }))
    .max(100)
    .readonly()
    .optional(),
  changes: z
    .array(z.strictObject({ label: Text, before: Text, after: Text }))
    .max(100)
    .readonly()
    .optional(),
  text: z.strictObject({ label: Text.optional(), before: Text, after: Text }).optional(),
  picture: z
    .strictObject({
      url: z
        .string()
        .max(500_000)
        .regex(/^(?:data:image\/|https?:\/\/)/i, 'Expected a data:image/ or http(s): URL'),
      alt: Text,
    })
    .optional(),
  blocked: Text.min(1).optional(),
  amount: z
    .strictObject({
      value: z.number(),
      currency: z.string().regex(/^[A-Z]{3}$/, 'Expected an ISO code such as USD'),
      available: z.number().optional(),
    })
    .optional(),
}) satisfies z.ZodType<Preview>

/** Returns a preview with its digest. Two previews have the same digest if people see the same. */
export function toShownPreview(preview: Preview): ShownPreview {
  const { success, data, error } = PolicyPreview.safeParse(preview)
  if (!success) throw new TypeError(`The policy returned an invalid preview: ${error.message}`)
  return { ...data, digest: digestJson(data) }
}

/** How long a function of the policy may take, in ms. */
export const POLICY_TIMEOUT_MS = 5_000

/** Calls a function of the policy. Rejects if it throws or takes longer than `POLICY_TIMEOUT_MS`. */
export async function callInTime<Result>(
  name: string,
  run: () => Result | Promise<Result>,
): Promise<Result> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () =>
        reject(new Error(`\`${name}\` of the policy took longer than ${POLICY_TIMEOUT_MS} ms.`)),
      POLICY_TIMEOUT_MS,
    )
  })
  try {
    return await Promise.race([Promise.resolve().then(run), late])
  } finally {
    clearTimeout(timer)
  }
}
