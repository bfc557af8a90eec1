import { randomUUID } from 'node:crypto'

import type { Context } from '@google/adk'

import { wrapRun } from '../../agent/adk-workarounds/guard-tool.ts'
import { type ToolCall, chatOf } from '../../agent/tool-call.ts'
import { listTools } from '../../agent/tree/list-agents.ts'
import { type Approval, isRefusal } from '../../approvals/approval.ts'
import { digestJson } from '../../approvals/digest.ts'
import type { Grant } from '../../approvals/grant.ts'
import type { NextNote } from '../../approvals/next-approval.ts'
import { createTransition } from '../../approvals/next-approval.ts'
import type { ApprovalPolicy, PolicyCall, PolicyTerms } from '../../approvals/policy.ts'
import { findByName, resolvePolicy, toPolicyCall } from '../../approvals/policy.ts'
import { makePreview } from '../../approvals/policy-previews.ts'
import { digestDeclaration } from '../../calls/arguments-schema.ts'
import type {
  CallCheck,
  CallHost,
  CallKind,
  CallPlace,
  TermsOptions,
} from '../../calls/call-kind.ts'
import { PlanTool } from './plan-tool.ts'
import type { Preview } from '../../protocol/preview.ts'
import { withoutUndefined } from '../../shared/collections.ts'
import type { CoreSettings } from '../module.ts'
import { judgePlan, type PlanStep } from './judge-plan.ts'

/** Returns the tools with which the agents propose plans, by name. */
export function listPlanTools({
  agents,
}: Pick<CoreSettings, 'agents'>): ReadonlyMap<string, PlanTool> {
  const tools = [...agents.values()].flatMap((root) => listTools(root))
  return new Map(tools.flatMap((tool) => (tool instanceof PlanTool ? [[tool.name, tool]] : [])))
}

/** Returns a policy that also judges plans: a plan is as severe as its most severe call, and its preview shows all of them. */
export function judgePlans(
  tools: ReadonlyMap<string, PlanTool>,
  policy: ApprovalPolicy,
  onError: (error: unknown) => void,
): ApprovalPolicy {
  const judge = async (tool: PlanTool, call: PolicyCall): Promise<PolicyTerms> => {
    const own = typeof policy === 'function' ? policy : findByName(policy, tool.name)
    const verdict = typeof own === 'function' ? await own(call) : own
    const terms = typeof verdict === 'object' ? verdict : {}
    const { args, chat } = call
    const judged = await judgePlan({ tool, args, chat }, { policy, onError })
    const severities = 'fault' in judged ? [] : judged.map((step) => step.terms.severity)
    const severity = SEVERITIES.find((each) => each === terms.severity || severities.includes(each))
    return {
      ...terms,
      ...(severity && { severity }),
      required: true,
      // So that the declaration of the tool is stored, which has the schemas of the others.
      plans: true,
      preview: (_args, { reader }) => previewPlan(judged, reader, onError),
    }
  }
  if (typeof policy !== 'function') {
    const plans = [...tools].map(
      ([name, tool]) => [name, (call: PolicyCall) => judge(tool, call)] as const,
    )
    return { ...policy, ...Object.fromEntries(plans) }
  }
  return (call) => {
    const tool = tools.get(call.toolName)
    return tool ? judge(tool, call) : policy(call)
  }
}

const SEVERITIES = ['high', 'medium', 'low'] as const

type JudgedPlan = Awaited<ReturnType<typeof judgePlan>>

/** Returns a preview with a line for each call: its own headline, or its arguments. */
async function previewPlan(
  judged: JudgedPlan,
  reader: string,
  onError: (error: unknown) => void,
): Promise<Preview> {
  if ('fault' in judged) return { blocked: judged.fault }
  const calls = judged.map(({ call }) => toPolicyCall(call))
  const made = await Promise.all(
    judged.map(({ call, functions: { preview, previewInPlan } }, index) => {
      const context = { ...toPolicyCall(call), reader, earlier: calls.slice(0, index) }
      const inPlan = previewInPlan && (() => previewInPlan(call.args, context))
      return makePreview(inPlan ?? preview, context, onError)
    }),
  )
  const failed = made.findIndex(({ state }) => state === 'failed')
  if (failed !== -1) throw new Error(`The preview of step ${failed + 1} of a plan failed.`)
  const shown = made.map((each) => (each.state === 'made' ? each.preview : undefined))
  const blocked = shown.find((each) => each?.blocked !== undefined)?.blocked
  const steps = judged.map(({ call: { toolName, args }, terms, functions }, index) => {
    const { headline, lines = [], changes = [] } = shown[index] ?? {}
    const values = Object.entries(args)
      .map(([name, value]) => `${name}: ${formatValue(value)}`)
      .join(', ')
    const first = {
      label: `${index + 1}. ${terms.title ?? toolName}`,
      value: headline === undefined ? values : `${headline} (${values})`,
    }
    const changed = changes.map(({ label, before, after }) => ({
      label,
      value: `${before} → ${after}`,
    }))
    // What a preview says of a call alone may be wrong after the calls before it.
    const isWhole = functions.previewInPlan !== undefined || judged.length === 1
    return isWhole ? [first, ...lines, ...changed] : [first]
  })
  const lines = steps.flat()
  return {
    lines: lines.length > MAX_LINES ? steps.flatMap(([first]) => first ?? []) : lines,
    ...(blocked !== undefined && { blocked }),
  }
}

/** More lines make a preview invalid. */
const MAX_LINES = 100

function formatValue(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Calls that propose plans. A plan is an approval like any other. When it was approved, its tool gives a grant for each call of it. */
export class PlanCalls implements CallKind {
  readonly name = undefined
  readonly asks = 'before-call'
  readonly isEnabled = true
  readonly hasPolicy = true
  // By the actions of the call, which a copy of its context shares.
  readonly #approved = new WeakMap<Context['actions'], Approval>()
  /** Calls inside agents that are used as tools. */
  readonly #insideTools = new WeakSet<Context['actions']>()

  /** Refuses a plan that a person could not approve, so that the model can correct it. */
  check(call: ToolCall, options: TermsOptions): Promise<CallCheck | undefined> | undefined {
    const { tool } = call
    return tool instanceof PlanTool ? this.#check({ ...call, tool }, options) : undefined
  }

  prepare(call: ToolCall, { host, run }: CallPlace): void {
    const { tool, toolContext } = call
    if (!(tool instanceof PlanTool)) return
    if (run?.isOfChat === false) this.#insideTools.add(toolContext.actions)
    wrapRun(toolContext, this, (_run, toolArgs) => this.#approve({ ...call, tool, toolArgs }, host))
  }

  onClaimed({ actions }: Context, claimed: Approval): void {
    this.#approved.set(actions, claimed)
  }

  async #check(call: PlanCall, options: TermsOptions): Promise<CallCheck | undefined> {
    const fault = await this.#findFault(call, options)
    return fault === undefined
      ? undefined
      : { verdict: 'refuse', response: { error: `Not proposed: ${fault}` } }
  }

  async #findFault(call: PlanCall, options: TermsOptions): Promise<string | undefined> {
    const { tool, toolArgs: args, toolContext } = call
    if (this.#insideTools.has(toolContext.actions))
      return 'only an agent of the chat can propose a plan.'
    const judged = await judgeCall(call, options)
    if ('fault' in judged) return judged.fault
    const chat = chatOf(toolContext.invocationContext.session)
    const own = { chat, toolName: tool.name, args }
    const terms = await resolvePolicy(options.policy, own, {
      required: () => true,
      onError: options.onError,
    })
    return terms?.plans ? undefined : 'the policy does not let the person decide plans alone.'
  }

  /** Gives the grants of an approved plan. */
  async #approve(call: PlanCall, host: CallHost): Promise<Record<string, unknown>> {
    const { tool, toolContext } = call
    const approval = this.#approved.get(toolContext.actions)
    const voter = approval?.votes.at(-1)?.principalId
    if (!approval || voter === undefined) throw new Error('The plan was not approved.')
    // The policy and the tools may have changed since.
    const judged = await judgeCall(call, host)
    const isSame = approval.terms.declaration === digestDeclaration(tool, undefined)
    const fault = 'fault' in judged ? judged.fault : 'its tools have changed.'
    if ('fault' in judged || !isSame) return { success: false, error: `Not approved: ${fault}` }
    const { policyVersion } = host.ledger
    const given = await host.ledger.note(
      approval.id,
      giveGrants(judged, tool, { by: voter, ...withoutUndefined({ policyVersion }) }),
    )
    if (isRefusal(given)) throw new Error(`The plan was not stored: ${given.refused}.`)
    return {
      status: 'approved',
      steps: judged.length,
      message: 'The person approved these calls. Make them now, with exactly these arguments.',
    }
  }
}

type PlanCall = Omit<ToolCall, 'tool'> & { readonly tool: PlanTool }

function judgeCall({ tool, toolArgs, toolContext }: PlanCall, options: TermsOptions) {
  const chat = chatOf(toolContext.invocationContext.session)
  return judgePlan({ tool, args: toolArgs, chat }, options)
}

/** Gives one grant for each different call of a plan, which covers it as often as the plan has it. They replace those of earlier plans in the chat. */
export function giveGrants(
  steps: readonly PlanStep[],
  { tools }: PlanTool,
  giver: Pick<Grant, 'by' | 'policyVersion'>,
): NextNote {
  const counts = new Map<string, { readonly step: PlanStep; readonly id: string; count: number }>()
  for (const step of steps) {
    const { toolName, args } = step.call
    const key = digestJson([toolName, args])
    const known = counts.get(key)
    if (known) known.count += 1
    else counts.set(key, { step, id: randomUUID(), count: 1 })
  }
  return (approval, now) => {
    const { id: approvalId, chat, toolCallId } = approval
    const grants = [...counts].map(([key, { step, id, count }]): Grant => {
      const { call, terms, expiresMs } = step
      const { toolName, args: pinned, claims } = call
      const tool = tools.get(toolName)
      return {
        id,
        chat,
        approvalId,
        toolCallId,
        toolName,
        ...giver,
        plan: true,
        offer: { id: key, effect: 'approve', free: [], maxUses: count, expiresMs, scope: 'chat' },
        pinned,
        declaration: tool ? digestDeclaration(tool, claims) : '',
        ...withoutUndefined({ title: terms.title, severity: terms.severity }),
        grantedAt: now,
        expiresAt: now + expiresMs,
      }
    })
    const event = {
      type: 'grants-given',
      grants: grants.map(({ id, toolName, offer, pinned }) => ({ id, toolName, offer, pinned })),
    } as const
    const writes = { type: 'open-plan', chat, grants } as const
    return { ...createTransition(approval, {}, { at: now, event }), writes }
  }
}
