import * as z from 'zod'

import type { Preview } from '../protocol/preview.ts'
import { callInTime } from '../shared/async.ts'
import type { AppChatRef } from '../shared/chat-ref.ts'
import { withoutUndefined } from '../shared/collections.ts'
import type { ApprovalStep, ApprovalTerms, ToolClaims } from './approval.ts'
import { NO_CLAIMS } from './approval.ts'
import { isCompletable, isDecidedByOne } from './deciders.ts'
import type { DelegationPolicy } from './delegation-terms.ts'
import { DelegationPolicySchema, toDelegationTerms } from './delegation-terms.ts'
import type { GrantPolicy } from './grant-terms.ts'
import { findGrantFault, GrantPolicySchema, toGrantTerms } from './grant-terms.ts'
import type { ReplyPolicy } from './reply-terms.ts'
import { findReplyFault, ReplyPolicySchema, toReplyTerms } from './reply-terms.ts'

const Deciders = z.strictObject({
  principals: z.array(z.string().min(1)).readonly().optional(),
  roles: z.array(z.string().min(1)).readonly().optional(),
})

const Count = z.int().min(1).max(100)

/** Ten years. A later time may not be a date: `new Date(Date.now() + Number.MAX_SAFE_INTEGER)` is invalid. */
export const MAX_DEADLINE_MS = 10 * 365 * 24 * 3_600_000

const NOT_A_FUNCTION = 'Invalid input: expected function'

/** The terms of an approval: who must approve, by when, and what they see. */
export interface PolicyTerms extends ReplyPolicy, GrantPolicy, DelegationPolicy {
  /** Whether the call needs approval at all. Default true. */
  readonly required?: boolean | undefined
  /** The text that the approver reads. Default: the hint of the tool. */
  readonly hint?: string | undefined
  /** Replaces the name of the tool. */
  readonly title?: string | undefined
  readonly severity?: 'low' | 'medium' | 'high' | undefined
  /** A name that the page maps to an icon. */
  readonly icon?: string | undefined
  /** How long people may take to decide, in ms. Then the approval expires. Default: 24 hours. */
  readonly deadlineMs?: number | undefined
  /** The principals and roles that may decide. Default: the owner of the chat. */
  readonly deciders?: PolicyDeciders | undefined
  /** How many of the deciders must approve. Default 1. */
  readonly approvers?: number | undefined
  /** Several steps, one after the other, instead of `deciders` and `approvers`. */
  readonly chain?: readonly PolicyStep[] | undefined
  /** Whether the tool may run again with the same idempotency key if it is not known whether it ran. Default false. */
  readonly idempotent?: boolean | undefined
  /**
   * Returns what the call would do. It is called when the approval is shown and again when it is approved. If the
   * preview has changed meanwhile, the approval is rejected with `preview-changed` and stays pending.
   */
  readonly preview?: PreviewFunction | undefined
  /**
   * Like `preview`, for a call of a plan. `earlier` has the calls of the plan that come before it, so that a balance can be the one that
   * they leave. Without it, a plan of several calls shows only their headlines and arguments, because a preview of each alone can be wrong
   * for all of them together.
   */
  readonly previewInPlan?: PlanPreviewFunction | undefined
  /** Whether every approval must name the preview that the person saw. Stock clients of the AI SDK cannot. Default false. */
  readonly requirePreview?: boolean | undefined
  /** Returns what the call did, from its result. The card shows it as a receipt. */
  readonly receipt?: ReceiptFunction | undefined
  /**
   * Whether everyone who may see the approval also sees the message of the user that led to the call, as plain text of at most 500
   * characters. It is stored with the approval and in the audit record. Default false: approvers see the call, not the conversation.
   */
  readonly showUserText?: boolean | undefined
  /** Returns whether the result of the tool means that the call failed. Default: `success: false`, `status: 'error'`, or `isError: true` of an MCP tool. */
  readonly isFailure?: FailureFunction | undefined
}

/** Who may decide: principals by id, and roles as `authenticate` returns them. */
interface PolicyDeciders {
  readonly principals?: readonly string[] | undefined
  readonly roles?: readonly string[] | undefined
}

/** A step of a chain of approvals. */
interface PolicyStep extends PolicyDeciders {
  /** How many of the deciders must approve. Default 1. */
  readonly count?: number | undefined
}

/** Checks the terms that a policy returns. */
export const PolicyTermsSchema = z.strictObject({
  required: z.boolean().optional(),
  hint: z.string().optional(),
  title: z.string().optional(),
  severity: z.enum(['low', 'medium', 'high']).optional(),
  icon: z.string().optional(),
  deadlineMs: z.number().positive().max(MAX_DEADLINE_MS).optional(),
  deciders: Deciders.optional(),
  approvers: Count.optional(),
  chain: z
    .array(Deciders.extend({ count: Count.optional() }))
    .min(1)
    .readonly()
    .optional(),
  idempotent: z.boolean().optional(),
  preview: z.custom<PreviewFunction>(isFunction, NOT_A_FUNCTION).optional(),
  previewInPlan: z.custom<PlanPreviewFunction>(isFunction, NOT_A_FUNCTION).optional(),
  requirePreview: z.boolean().optional(),
  receipt: z.custom<ReceiptFunction>(isFunction, NOT_A_FUNCTION).optional(),
  showUserText: z.boolean().optional(),
  ...DelegationPolicySchema,
  ...ReplyPolicySchema,
  ...GrantPolicySchema,
  isFailure: z.custom<FailureFunction>(isFunction, NOT_A_FUNCTION).optional(),
} satisfies Record<keyof PolicyTerms, z.ZodType>)

function isFunction(value: unknown): boolean {
  return typeof value === 'function'
}

/**
 * The verdict of a policy on a call: `false` (no approval), `true` (approval by the owner of the chat), or the terms
 * of the approval.
 */
export type PolicyVerdict = boolean | PolicyTerms

/** The call that a policy function receives, with what the server of an MCP tool claims about it. */
export interface PolicyCall extends ToolClaims {
  readonly chat: AppChatRef
  readonly toolName: string
  readonly args: Readonly<Record<string, unknown>>
}

/** A call before the policy judges it. `claims` is undefined if the tool does not come from an MCP server. */
export interface CallToJudge {
  readonly chat: AppChatRef
  readonly toolName: string
  readonly args: Readonly<Record<string, unknown>>
  readonly claims?: ToolClaims | undefined
}

/** Returns a call as the functions of a policy receive it. */
export function toPolicyCall({
  chat,
  toolName,
  args,
  claims = NO_CLAIMS,
}: CallToJudge): PolicyCall {
  return { chat, toolName, args, ...claims }
}

/** The call that a preview or receipt is about, and the person who reads it. */
export interface PreviewContext extends PolicyCall {
  /** The id of the principal who reads the preview. */
  readonly reader: string
}

/** Returns what a call with these arguments would do. */
type PreviewFunction = (
  args: Readonly<Record<string, unknown>>,
  context: PreviewContext,
) => Preview | Promise<Preview>

/** Returns what a call of a plan would do after the calls before it. */
type PlanPreviewFunction = (
  args: Readonly<Record<string, unknown>>,
  context: PreviewContext & { readonly earlier: readonly PolicyCall[] },
) => Preview | Promise<Preview>

/** Returns what a call did, or undefined for no receipt. */
type ReceiptFunction = (
  output: unknown,
  context: PreviewContext,
) => Preview | undefined | Promise<Preview | undefined>

/** Returns whether the output of a tool means that the call failed. */
type FailureFunction = (output: unknown, context: PreviewContext) => boolean | Promise<boolean>

/** The functions of a verdict. They are called when an approval is shown, decided, and when its call has ended. */
export type PolicyFunctions = Pick<
  PolicyTerms,
  'preview' | 'previewInPlan' | 'receipt' | 'isFailure'
>

/** Returns the verdict on a call. */
type PolicyFunction = (call: PolicyCall) => PolicyVerdict | Promise<PolicyVerdict>

/**
 * Decides which calls need approval: a function for all calls, or a verdict or function for each tool name. A name may
 * be a pattern in which `*` stands for any characters, such as `github_*` for all tools of an MCP server. For a tool
 * that the policy does not name, the tool's own `requireConfirmation` applies. If a policy throws or returns an
 * invalid verdict, the call needs the approval of the owner of the chat.
 */
export type ApprovalPolicy =
  | PolicyFunction
  | Readonly<Record<string, PolicyVerdict | PolicyFunction>>

export interface PolicyDefaults {
  /** Whether a call that the policy does not name needs approval, according to the tool itself. */
  readonly required: () => boolean | Promise<boolean>
  /** How long people may take if the policy does not say, in ms. Default: 24 hours. */
  readonly deadlineMs?: number
  /** The hint and payload that the tool passes to `requestConfirmation`. */
  readonly hint?: string
  readonly payload?: unknown
  /** Receives the error of a policy that throws or returns an invalid verdict. */
  readonly onError?: (error: unknown) => void
}

export type ResolvedTerms = ApprovalTerms & { readonly deadlineMs: number }

const DEFAULT_DEADLINE_MS = 24 * 3_600_000

/** Returns the terms of a call, or undefined if it needs no approval. If the policy fails, the call needs approval. */
export async function resolvePolicy(
  policy: ApprovalPolicy,
  call: CallToJudge,
  defaults: PolicyDefaults,
): Promise<ResolvedTerms | undefined> {
  return (await resolveVerdict(policy, call, defaults))?.terms
}

/** Like `resolvePolicy`, with the functions of the verdict. */
export async function resolveVerdict(
  policy: ApprovalPolicy,
  call: CallToJudge,
  defaults: PolicyDefaults,
): Promise<{ readonly terms: ResolvedTerms; readonly functions: PolicyFunctions } | undefined> {
  const verdict = await evaluatePolicy(policy, call, defaults)
  if (verdict === false) return undefined
  const terms = verdict === true ? {} : verdict
  if (terms.required === false) return undefined
  const { preview, previewInPlan, receipt, isFailure } = terms
  const functions = { preview, previewInPlan, receipt, isFailure }
  return { terms: toTerms(terms, call, defaults), functions }
}

/** Returns the terms that the ledger stores: plain data instead of the functions of the verdict. */
function toTerms(
  terms: PolicyTerms,
  { claims, chat }: CallToJudge,
  defaults: PolicyDefaults,
): ResolvedTerms {
  const { hint = defaults.hint, title = claims?.title, severity, icon } = terms
  const { preview, requirePreview, receipt, isFailure, showUserText } = terms
  const { deadlineMs = defaults.deadlineMs ?? DEFAULT_DEADLINE_MS, idempotent = false } = terms
  const chain = chainOf(terms, chat.principalId)
  return {
    ...withoutUndefined({ hint, title, severity, icon, payload: defaults.payload }),
    ...(preview && { preview: requirePreview ? ('required' as const) : ('optional' as const) }),
    ...((receipt ?? isFailure) && { readsResult: true as const }),
    ...(showUserText && { showsUserText: true as const }),
    ...toDelegationTerms(terms),
    ...(claims && { claims }),
    ...toReplyTerms({ ...terms, isDecidedByOne: isDecidedByOne({ chain }) }, defaults.payload),
    ...toGrantTerms({ ...terms, chain, owner: chat.principalId }, defaults.payload),
    chain,
    idempotent,
    deadlineMs,
  }
}

async function evaluatePolicy(
  policy: ApprovalPolicy,
  call: CallToJudge,
  { required, onError }: PolicyDefaults,
): Promise<PolicyVerdict> {
  try {
    const own = typeof policy === 'function' ? policy : findByName(policy, call.toolName)
    const verdict =
      typeof own === 'function'
        ? await callInTime(`The policy for ${call.toolName}`, () => own(toPolicyCall(call)))
        : (own ?? (await required()))
    return readVerdict(call.toolName, verdict)
  } catch (error) {
    onError?.(error)
    return true
  }
}

/** Checks the verdict of a policy. Throws an error of one sentence that names the tool and the field. */
function readVerdict(toolName: string, verdict: unknown): PolicyVerdict {
  if (typeof verdict === 'boolean') return verdict
  const { success, data, error } = PolicyTermsSchema.safeParse(verdict)
  if (success) return data
  const [issue] = error.issues
  const field = issue?.path.length ? `\`${issue.path.join('.')}\`: ` : ''
  throw new TypeError(
    `The policy for ${toolName} returned an invalid verdict (${field}${issue?.message ?? 'wrong shape'}), so the call needs the approval of the owner of the chat.`,
  )
}

/**
 * Returns what a policy says about a tool: by its name, otherwise by the pattern with the most characters besides `*`.
 * Throws if two patterns are equally specific.
 */
export function findByName(
  policy: Exclude<ApprovalPolicy, PolicyFunction>,
  toolName: string,
): PolicyVerdict | PolicyFunction | undefined {
  const name = findEntry(policy, toolName)
  return name === undefined ? undefined : policy[name]
}

/** Returns the name or pattern of a policy that applies to a tool. */
export function findEntry(
  policy: Exclude<ApprovalPolicy, PolicyFunction>,
  toolName: string,
): string | undefined {
  // The model chooses the name, so `constructor` must not find an inherited property.
  if (Object.hasOwn(policy, toolName)) return toolName
  return findPattern(Object.keys(policy), toolName)
}

/** Returns why terms can never apply, and the field that is to be removed or changed, if it is one. */
export function findTermsFault(
  terms: PolicyTerms,
): { readonly field?: keyof PolicyTerms; readonly fault: string } | undefined {
  const { requirePreview, preview } = terms
  if (requirePreview && preview === undefined)
    return {
      field: 'requirePreview',
      fault: 'needs `preview`, which returns what the call would do.',
    }
  const chain = chainOf(terms, 'the owner of the chat')
  const reply = findReplyFault({ ...terms, isDecidedByOne: isDecidedByOne({ chain }) })
  const fault = reply ?? findGrantFault({ ...terms, chain })
  if (fault) return fault
  if (!isCompletable(chain))
    return {
      fault:
        'can never be approved: it needs more different people than it names. Name more `principals` or `roles`, or fewer `approvers`.',
    }
  return undefined
}

/** Returns the steps of an approval by its terms and the owner of the chat. */
function chainOf(
  { chain, deciders, approvers: count = 1 }: PolicyTerms,
  owner: string,
): ApprovalStep[] {
  if (chain !== undefined) return chain.map((step) => stepOf(step, step.count ?? 1))
  return [stepOf(deciders ?? { principals: [owner] }, count)]
}

function stepOf({ principals = [], roles = [] }: PolicyDeciders, count: number): ApprovalStep {
  return { count, principals, roles }
}

/** Whether a name in a policy is a pattern. The name of a tool has no `*`. */
export function isPattern(name: string): boolean {
  return name.includes('*')
}

/** Whether a pattern matches every name. */
export function isAnyName(name: string): boolean {
  return /^\*+$/.test(name)
}

/** Whether a tool name matches a name or pattern of a policy. `*` stands for any characters, also for none. */
export function matchesName(pattern: string, toolName: string): boolean {
  if (!isPattern(pattern)) return pattern === toolName
  const [head = '', ...rest] = pattern.split('*')
  const tail = rest.pop() ?? ''
  if (toolName.length < head.length + tail.length) return false
  if (!toolName.startsWith(head) || !toolName.endsWith(tail)) return false
  const end = toolName.length - tail.length
  let position = head.length
  for (const part of rest) {
    const found = toolName.indexOf(part, position)
    if (found === -1 || found + part.length > end) return false
    position = found + part.length
  }
  return true
}

/** Returns the most specific pattern that matches a tool. Throws if there are two. */
export function findPattern(names: readonly string[], toolName: string): string | undefined {
  const [first, second] = names
    .filter((name) => isPattern(name) && matchesName(name, toolName))
    .toSorted((one, other) => specificity(other) - specificity(one))
  if (first !== undefined && second !== undefined && specificity(first) === specificity(second))
    throw new TypeError(
      `The patterns ${first} and ${second} of \`approvals\` are equally specific, and both match the tool ${toolName}. Add a verdict for ${toolName}.`,
    )
  return first
}

/** Returns how specific a pattern is: the number of its characters besides `*`. */
export function specificity(pattern: string): number {
  return pattern.replaceAll('*', '').length
}
