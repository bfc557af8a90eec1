import type { Approval } from '../../../approvals/approval.ts'
import { whyUndecidable } from '../../../approvals/deciders.ts'
import { describeApproval } from '../../../approvals/describe-approval.ts'
import { isRecord } from '../../../protocol/guards.ts'
import type { ChatRef } from '../../../shared/chat-ref.ts'
import { withoutUndefined } from '../../../shared/collections.ts'
import { toLiteral } from '../../../shared/literal-text.ts'
import type { Principal } from '../../auth/authenticate.ts'
import type { Backend } from '../../chats/backend.ts'
import { toAppChat } from '../../chats/backend.ts'
import { toDecider } from '../../chats/decisions/decision-results.ts'
import { readSchema, viewApproval } from '../../routes/approval-routes.ts'
import type { Interrupt, OpenInterrupt } from './events.ts'

/** Why an answer was refused. */
export interface RefusedAnswer {
  readonly interruptId?: string
  readonly code: string
  readonly message: string
}

interface InterruptOptions {
  readonly principal: Principal
  readonly chat: ChatRef
  readonly isVersioned: boolean
  readonly refused: readonly RefusedAnswer[]
}

/**
 * Returns what waits in a chat and what this person can answer now (AG1384). Anything else would block the page until somebody else has
 * answered.
 */
export async function findInterrupts(
  backend: Backend,
  { principal, chat, isVersioned, refused }: InterruptOptions,
): Promise<OpenInterrupt[]> {
  const { ledger } = backend
  const pending = await ledger.pendingOf(toAppChat(backend, chat))
  if (pending.length === 0) return []
  const now = await ledger.now()
  const by = toDecider(principal)
  const answerable = pending.filter(
    (approval) => approval.deadline > now && whyUndecidable(approval, by) === undefined,
  )
  return Promise.all(
    answerable.map(async (approval) => {
      const problem = refused.find(({ interruptId }) => interruptId === approval.id)
      return toInterrupt(backend, approval, { principal, isVersioned, problem })
    }),
  )
}

async function toInterrupt(
  backend: Backend,
  approval: Approval,
  {
    principal,
    isVersioned,
    problem,
  }: Pick<InterruptOptions, 'principal' | 'isVersioned'> & { problem: RefusedAnswer | undefined },
): Promise<OpenInterrupt> {
  const { id, toolCallId, toolName, deadline } = approval
  const current = await backend.refresh(approval, principal.id)
  const schema = await readSchema(approval, backend)
  const view = viewApproval(current.approval, principal, { ...current, schema, names: NO_NAMES })
  const { hint, title, kind } = current.approval.terms
  const preview = current.preview.state === 'made' ? current.preview.preview : undefined
  const words = describeApproval({ toolName, args: approval.args, hint, title, kind }, preview)
  const asked = kind === undefined ? [`Allow ${words.call}?`] : []
  const link = readLink(backend, approval)
  const headline = words.headline === undefined ? [] : [words.headline]
  const text = [...headline, ...asked, ...(link ? [toLiteral(link.url)] : [])].join('\n')
  // AG1385: a page tool is not shown before it is approved, so no call is named.
  const isPageTool = kind === undefined && backend.isPageTool(toolName)
  const interrupt = {
    id,
    reason: toReason(backend, approval, isPageTool),
    message: problem ? `${text} (${problem.message})` : text,
    ...(!isPageTool && { toolCallId }),
    ...withoutUndefined({ responseSchema: toResponseSchema(backend, approval, schema) }),
    // An expired interrupt blocks clients before 1.0 for good.
    ...(isVersioned && { expiresAt: new Date(deadline).toISOString() }),
    metadata: { adk: { ...view, ...(problem && { refused: problem }) } },
  }
  return { interrupt, words, preview, link }
}

/**
 * Returns the address that a question asks to open (AP506), or where it can be answered. The arguments of a call that nobody answers are
 * those of the model.
 */
function readLink({ kinds }: Backend, approval: Approval): OpenInterrupt['link'] {
  const kind = kinds.of(approval)
  const isAnswered = approval.terms.kind !== undefined && kind.answer !== undefined
  const url = kind.toAnswerUrl?.(approval) ?? (isAnswered ? approval.args['url'] : undefined)
  if (typeof url !== 'string' || !URL.canParse(url)) return undefined
  const { protocol, href, host } = new URL(url)
  return /^https?:$/.test(protocol) ? { url: href, host: toLiteral(host) } : undefined
}

const NO_NAMES: ReadonlyMap<string, string> = new Map()

function toReason({ kinds }: Backend, approval: Approval, isPageTool: boolean): string {
  const { kind } = approval.terms
  if (kind === undefined) return isPageTool ? 'adk:page_tool' : 'tool_call'
  const asksForValue = kinds.of(approval).answer?.toSchema(approval.terms) !== undefined
  return asksForValue || approval.terms.schema ? 'input_required' : `adk:${kind}`
}

/** Returns the schema of an answer. Only these keywords: assistant-ui then shows an approval with its own buttons. */
function toResponseSchema(
  { kinds }: Backend,
  approval: Approval,
  argsSchema: Record<string, unknown> | undefined,
): Interrupt['responseSchema'] {
  const { kind, schema, payload } = approval.terms
  if (kind !== undefined) {
    const isAnswered = kinds.of(approval).answer !== undefined
    return isAnswered && isRecord(schema) ? schema : undefined
  }
  return {
    type: 'object',
    properties: {
      approved: { type: 'boolean' },
      reason: { type: 'string' },
      ...(argsSchema && { editedArgs: argsSchema }),
      ...(payload !== undefined && { payload: {} }),
    },
    required: ['approved'],
  }
}
