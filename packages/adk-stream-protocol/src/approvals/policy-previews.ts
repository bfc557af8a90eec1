import type { Preview, ShownPreview } from '../protocol/preview.ts'
import { callInTime } from '../shared/async.ts'
import type { Approval } from './approval.ts'
import { digestJson } from './digest.ts'
import type { ApprovalPolicy, CallToJudge, PolicyFunctions, PreviewContext } from './policy.ts'
import { resolveVerdict, toPolicyCall } from './policy.ts'
import { PolicyPreview } from './preview-schema.ts'

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
