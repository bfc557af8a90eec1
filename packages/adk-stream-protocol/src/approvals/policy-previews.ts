import * as z from 'zod'

import type { Preview, ShownPreview } from '../protocol/preview.ts'
import { callInTime } from '../shared/async.ts'
import { toLiteral } from '../shared/literal-text.ts'
import type { Approval } from './approval.ts'
import { digestJson } from './digest.ts'
import type { ApprovalPolicy, CallToJudge, PolicyFunctions, PreviewContext } from './policy.ts'
import { resolveVerdict, toPolicyCall } from './policy.ts'

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

/** Returns a preview with its digest. Two previews have the same digest if people see the same. */
function toShownPreview(preview: Preview): ShownPreview {
  const { success, data, error } = PolicyPreview.safeParse(preview)
  if (!success) throw new TypeError(`The policy returned an invalid preview: ${error.message}`)
  return { ...data, digest: digestJson(data) }
}

/** The preview of a call: made, expected but not available, or not given by the policy. */
export type PreviewResult =
  | { readonly state: 'made'; readonly preview: ShownPreview }
  | { readonly state: 'failed' }
  | { readonly state: 'none' }

/** Makes the preview of a call with the function of the policy. An error goes to `onError`. */
export async function makePreview(
  preview: PolicyFunctions['preview'],
  context: PreviewContext,
  onError: (error: unknown) => void,
): Promise<PreviewResult> {
  if (!preview) return { state: 'none' }
  try {
    const made = await callInTime('`preview` of the policy', () => preview(context.args, context))
    return { state: 'made', preview: toShownPreview(made) }
  } catch (error) {
    onError(error)
    return { state: 'failed' }
  }
}

/** Makes the preview of an approval for a reader. Does not call the policy if it gives no preview. */
export async function previewApproval(
  { chat, toolName, args, terms }: Pick<Approval, 'chat' | 'toolName' | 'args' | 'terms'>,
  reader: string,
  options: PreviewOptions,
): Promise<PreviewResult> {
  if (terms.preview === undefined) return { state: 'none' }
  const call = { chat, toolName, args, claims: terms.claims }
  const made = await previewCall(call, reader, options)
  // Another version of the policy does not give the preview that this approval needs.
  return made.state === 'none' ? { state: 'failed' } : made
}

/** Makes the preview that the policy gives of a call now, for a reader. It fails if the policy does. */
export async function previewCall(
  call: CallToJudge,
  reader: string,
  { policy, onError }: PreviewOptions,
): Promise<PreviewResult> {
  let isJudged = true
  const verdict = await resolveVerdict(policy, call, {
    required: () => false,
    onError: (error) => {
      isJudged = false
      onError(error)
    },
  })
  if (!isJudged) return { state: 'failed' }
  return makePreview(verdict?.functions.preview, { ...toPolicyCall(call), reader }, onError)
}

interface PreviewOptions {
  readonly policy: ApprovalPolicy
  readonly onError: (error: unknown) => void
}
