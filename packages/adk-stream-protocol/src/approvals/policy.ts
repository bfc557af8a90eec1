import * as z from 'zod'
import type { ApprovalChat, ApprovalStep, ApprovalTerms } from './approval.ts'

const Deciders = z.strictObject({
  principals: z.array(z.string().min(1)).readonly().optional(),
  roles: z.array(z.string().min(1)).readonly().optional(),
})

const Count = z.int().min(1).max(100)

/** On which terms a call is asked about. */
export const PolicyTerms = z.strictObject({
  /** Default true: whoever writes terms wants them asked for. */
  required: z.boolean().optional(),
  hint: z.string().optional(),
  title: z.string().optional(),
  severity: z.enum(['low', 'medium', 'high']).optional(),
  icon: z.string().optional(),
  /** How long the decision may take, in ms. Default 24 hours. */
  deadlineMs: z
    .number()
    .positive()
    .max(10 * 365 * 24 * 3_600_000)
    .optional(),
  /** Who decides. Default: the chat's principal. */
  deciders: Deciders.optional(),
  /** How many of the deciders must approve. Default 1. */
  approvers: Count.optional(),
  /** Several steps, one after the other, in place of `deciders` and `approvers`. */
  chain: z
    .array(Deciders.extend({ count: Count.optional() }))
    .min(1)
    .readonly()
    .optional(),
  /** The tool may be run again with the same idempotency key when nobody knows whether it ran. Default false. */
  idempotent: z.boolean().optional(),
})

/** What a policy says about a call: no approval, an approval by the chat's principal, or an approval on its own terms. */
export const PolicyVerdict = z.union([z.boolean(), PolicyTerms])
export type PolicyVerdict = z.infer<typeof PolicyVerdict>

/** The call that a policy is asked about. */
export interface PolicyCall {
  readonly chat: ApprovalChat
  readonly toolName: string
  readonly args: Readonly<Record<string, unknown>>
}

type PolicyFunction = (call: PolicyCall) => PolicyVerdict | Promise<PolicyVerdict>

/** One function for all calls, or an verdict or a function by the name of the tool. */
export type ApprovalPolicy =
  | PolicyFunction
  | Readonly<Record<string, PolicyVerdict | PolicyFunction>>

export interface PolicyDefaults {
  /** Whether a call needs approval that no policy speaks of: what the tool itself says, asked only then. */
  readonly required: () => boolean | Promise<boolean>
  /** How long a decision may take where the policy does not say, in ms. Default 24 hours. */
  readonly deadlineMs?: number
  /** What the tool itself says when it asks. */
  readonly hint?: string
  readonly payload?: unknown
  /** Hears of a policy that throws or answers nonsense. */
  readonly onError?: (error: unknown) => void
}

export type ResolvedTerms = ApprovalTerms & { readonly deadlineMs: number }

const DEFAULT_DEADLINE_MS = 24 * 3_600_000

/** Asks the policy about a call; nothing when the call needs no approval. A policy that fails is a policy that wants one. */
export async function resolvePolicy(
  policy: ApprovalPolicy,
  call: PolicyCall,
  defaults: PolicyDefaults,
): Promise<ResolvedTerms | undefined> {
  const verdict = await evaluatePolicy(policy, call, defaults)
  if (verdict === false) return undefined
  const terms = verdict === true ? {} : verdict
  if (terms.required === false) return undefined
  const { hint = defaults.hint, title, severity, icon } = terms
  return {
    ...withoutUndefined({ hint, title, severity, icon, payload: defaults.payload }),
    chain: chainOf(terms, call.chat.principalId),
    idempotent: terms.idempotent ?? false,
    deadlineMs: terms.deadlineMs ?? defaults.deadlineMs ?? DEFAULT_DEADLINE_MS,
  }
}

async function evaluatePolicy(
  policy: ApprovalPolicy,
  call: PolicyCall,
  { required, onError }: PolicyDefaults,
): Promise<PolicyVerdict> {
  try {
    const own = typeof policy === 'function' ? policy : findByName(policy, call.toolName)
    const verdict = typeof own === 'function' ? await own(call) : (own ?? (await required()))
    return PolicyVerdict.parse(verdict)
  } catch (error) {
    onError?.(error)
    return true
  }
}

function findByName(
  policy: Exclude<ApprovalPolicy, PolicyFunction>,
  toolName: string,
): PolicyVerdict | PolicyFunction | undefined {
  // The model chooses the name: `constructor` must not find what every object has.
  return Object.hasOwn(policy, toolName) ? policy[toolName] : undefined
}

function chainOf(
  { chain, deciders, approvers: count = 1 }: z.infer<typeof PolicyTerms>,
  owner: string,
): ApprovalStep[] {
  if (chain !== undefined) return chain.map((step) => stepOf(step, step.count ?? 1))
  return [stepOf(deciders ?? { principals: [owner] }, count)]
}

function stepOf(
  { principals = [], roles = [] }: z.infer<typeof Deciders>,
  count: number,
): ApprovalStep {
  return { count, principals, roles }
}

function withoutUndefined<Fields extends object>(
  fields: Fields,
): { [Key in keyof Fields]?: Exclude<Fields[Key], undefined> } {
  const defined = Object.entries(fields).filter(([, value]) => value !== undefined)
  // The keys are those of `fields`, and the values are not `undefined`.
  return Object.fromEntries(defined) as { [Key in keyof Fields]?: Exclude<Fields[Key], undefined> }
}
