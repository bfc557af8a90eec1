import * as z from 'zod'

import type { Preview } from '../protocol/preview.ts'
import { toLiteral } from '../shared/literal-text.ts'

const Text = z.string().max(20_000)
/** A text in one line. Policies build it from arguments, which must not be able to add lines of their own. */
const Line = Text.transform((text) => toLiteral(text))

/** A preview or receipt, as a policy returns it. */
export const PolicyPreview = z.strictObject({
  headline: Line.optional(),
  action: z.string().max(200).pipe(Line).optional(),
  lines: z
    .array(z.strictObject({ label: Line, value: Line }))
    .max(100)
    .readonly()
    .optional(),
  changes: z
    .array(z.strictObject({ label: Line, before: Line, after: Line }))
    .max(100)
    .readonly()
    .optional(),
  text: z.strictObject({ label: Line.optional(), before: Text, after: Text }).optional(),
  picture: z
    .strictObject({
      url: z
        .string()
        .max(500_000)
        .regex(/^(?:data:image\/|https?:\/\/)/i, 'Expected a data:image/ or http(s): URL'),
      alt: Line,
    })
    .optional(),
  blocked: Text.min(1).pipe(Line).optional(),
  amount: z
    .strictObject({
      value: z.number(),
      currency: z.string().regex(/^[A-Z]{3}$/, 'Expected an ISO code such as USD'),
      available: z.number().optional(),
      aloneUpTo: z.number().optional(),
    })
    .optional(),
}) satisfies z.ZodType<Preview>
