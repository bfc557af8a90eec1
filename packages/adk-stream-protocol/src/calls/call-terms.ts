import { isDeepStrictEqual } from 'node:util'

import type { BaseTool, Event, Session } from '@google/adk'
import { getFunctionCalls, isAgentTool, ToolConfirmation } from '@google/adk'

import { DENIED_BEFORE, UNDETERMINED, describeIssues } from '../agent/call-responses.ts'
import { UNTRANSCRIBED, shorten } from '../agent/user-message.ts'
import { findInner, readNotes } from '../agent/events/event-notes.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import { chatOf } from '../agent/tool-call.ts'
import type { ApprovalTerms, ToolClaims } from '../approvals/approval.ts'
import { readAnnotations } from '../approvals/approval.ts'
import { isCompletable } from '../approvals/deciders.ts'
import { withoutOffers } from '../approvals/grant-terms.ts'
import type { ResolvedTerms } from '../approvals/policy.ts'
import { resolvePolicy } from '../approvals/policy.ts'
import { digestDeclaration, fitsSchema } from './arguments-schema.ts'
import type { CallCheck, TermsOptions } from './call-kind.ts'
import { isRecord } from '../protocol/guards.ts'

/** A confirmation that a tool requests itself, with `toolContext.requestConfirmation()`. */
export interface ToolQuestion {
  readonly hint: string
  readonly payload?: unknown
  /** Whether one person answers it, however many people the policy names. */
  readonly isAnsweredByOne?: true
}

/**
 * Returns whether a call runs, needs approval first, or is refused. The policy takes precedence over the tool. `session` is the session of
 * the chat.
 */
export async function checkCall(
  call: ToolCall,
  options: TermsOptions,
  session: Session = call.toolContext.invocationContext.session,
): Promise<CallCheck> {
  const { tool, toolArgs, toolContext } = call
  const own = await options.kinds.check(call, options)
  if (own) return own
  let failure: unknown
  const required = async (): Promise<boolean> => {
    try {
      return await tool.checkRequireConfirmation(toolArgs, toolContext)
    } catch (error) {
      failure = error ?? new Error('checkRequireConfirmation threw no error object.')
      throw error
    }
  }
  const terms = await resolve(call, { ...options, required })
  if (failure !== undefined) return { verdict: 'refuse', response: describeFailure(failure) }
  if (!terms) return { verdict: 'run' }
  return repeatsDenied(session.events, { name: tool.name, args: toolArgs })
    ? { verdict: 'refuse', response: DENIED_BEFORE }
    : { verdict: 'ask', terms }
}

/** Describes invalid arguments to the model, so that it can correct them. Other errors are only logged. */
function describeFailure(failure: unknown): { error: string } {
  const issues = describeIssues(failure)
  return issues === undefined ? UNDETERMINED : { error: `Not run: ${issues}` }
}

/**
 * Returns the terms for a tool that requests confirmation itself. A policy cannot waive it, because the tool needs
 * the response.
 */
export async function resolveQuestionTerms(
  call: ToolCall,
  question: ToolQuestion,
  options: TermsOptions,
): Promise<ResolvedTerms | undefined> {
  const asked = { ...options, ...question, required: () => true }
  return (await resolve(call, asked)) ?? resolve(call, { ...asked, policy: {} })
}

/**
 * Confirms a call that the policy lets run without approval. The policy of the host overrides the declaration of the tool: without a
 * confirmation, ADK would request approval, and the tool would refuse to run.
 */
export async function confirmUnasked({ tool, toolArgs, toolContext }: ToolCall): Promise<void> {
  try {
    if (!(await tool.checkRequireConfirmation(toolArgs, toolContext))) return
  } catch {
    // The tool cannot say whether it needs a confirmation.
    return
  }
  toolContext.toolConfirmation = new ToolConfirmation({ confirmed: true })
}

async function resolve(
  { tool, toolArgs, toolContext }: ToolCall,
  {
    policy,
    deadlineMs,
    hint,
    payload,
    isAnsweredByOne,
    ...defaults
  }: TermsOptions & Partial<ToolQuestion> & { readonly required: () => boolean | Promise<boolean> },
): Promise<ResolvedTerms | undefined> {
  const chat = chatOf(toolContext.invocationContext.session)
  const claims = readToolClaims(tool)
  const resolved = await resolvePolicy(
    policy,
    { chat, toolName: tool.name, args: toolArgs, claims },
    {
      ...defaults,
      ...(deadlineMs !== undefined && { deadlineMs }),
      ...(hint !== undefined && { hint }),
      ...(payload !== undefined && { payload }),
    },
  )
  const terms = resolved?.offers || resolved?.plans ? toGrantable(tool, resolved, claims) : resolved
  // The terms stay: other ones would let fewer people approve than the policy wants.
  if (terms && !isAnsweredByOne && !isCompletable(terms.chain))
    defaults.onError(new NeverApprovedError(tool.name))
  return terms && (fitsSchema(tool, toolArgs) ? { ...terms, fitsSchema: true } : terms)
}

function toGrantable(
  tool: BaseTool,
  terms: ResolvedTerms,
  claims: ToolClaims | undefined,
): ResolvedTerms {
  // An agent may pause, so its calls are always asked for.
  return isAgentTool(tool)
    ? withoutOffers(terms)
    : { ...terms, declaration: digestDeclaration(tool, claims) }
}

/** The terms of a call need more different people than they name. */
class NeverApprovedError extends TypeError {
  constructor(toolName: string) {
    super(
      `The policy for ${toolName} needs more different people than it names, so this call can be denied but never approved. Name more principals or roles.`,
    )
  }
}

interface Call {
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
}

/**
 * Whether a person has denied a similar call since their last message, without a reason. A model that calls again in other words
 * would otherwise ask until the person gives in. A denial with a reason may ask for another call, so it does not count.
 */
function repeatsDenied(events: readonly Event[], call: Call): boolean {
  const deniedIds = new Set<string>()
  for (const event of events.toReversed()) {
    if (isUserMessage(event)) return false
    // A model writes the messages to agents that are used as tools.
    const written = findInner(event) ?? event
    for (const id of listDenied(written)) deniedIds.add(id)
    const denied = getFunctionCalls(written).filter(({ id = '' }) => deniedIds.has(id))
    if (denied.some(({ name, args = {} }) => name === call.name && isSimilar(args, call.args)))
      return true
  }
  return false
}

/** Returns the calls that an event shows as denied without a reason. */
function listDenied(event: Pick<Event, 'customMetadata'>): string[] {
  const { decided = [] } = readNotes(event)
  return decided
    .filter(({ state, reason }) => state === 'denied' && reason === undefined)
    .map(({ toolCallId }) => toolCallId)
}

/** Whether a person wrote or said an event. Responses to calls are also events of the user. */
function isUserMessage({ author, content }: Event): boolean {
  return (
    author === 'user' && content?.parts?.some(({ functionResponse }) => functionResponse) !== true
  )
}

/** Whether at most one argument differs. If it is a list, such as the calls of a plan, one of its entries must be similar. */
function isSimilar(denied: Call['args'], next: Call['args']): boolean {
  const [only, ...others] = listChanged(denied, next)
  if (only === undefined || others.length > 0) return others.length === 0
  const [before, after] = [denied[only], next[only]]
  if (!Array.isArray(before) || !Array.isArray(after)) return true
  return after.some((entry) => before.some((known) => countChanged(known, entry) <= 1))
}

function listChanged(before: Call['args'], after: Call['args']): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...names].filter((name) => !isDeepStrictEqual(before[name], after[name]))
}

/** How many values differ in two objects and the objects in them. */
function countChanged(before: unknown, after: unknown): number {
  if (!isRecord(before) || !isRecord(after)) return isDeepStrictEqual(before, after) ? 0 : 1
  const counts = listChanged(before, after).map((name) => countChanged(before[name], after[name]))
  return counts.reduce((sum, count) => sum + count, 0)
}

/** The maximum number of graphemes. */
const MAX_USER_TEXT_CHARACTERS = 500
/** The maximum length in UTF-16 code units. */
const MAX_USER_TEXT_LENGTH = 2_000

/**
 * Adds the message of the user that led to a call to its terms, if the policy shows it. Speech that is not yet transcribed is left
 * out: an earlier message would be misleading.
 */
export function withUserText(
  terms: ApprovalTerms,
  events: readonly Event[],
  messageId: string,
): ApprovalTerms {
  if (terms.showsUserText !== true) return terms
  const userText = findUserText(events, messageId)
  return userText === undefined ? terms : { ...terms, userText }
}

/** Returns the text of the user message that an assistant message replies to. */
function findUserText(events: readonly Event[], messageId: string): string | undefined {
  const event = events.findLast((candidate) => {
    // Only the bridge writes these notes. A workflow stores the input of its agents, which a model wrote, as user events too.
    const notes = readNotes(candidate)
    return (
      candidate.author === 'user' &&
      notes.userMessageId !== undefined &&
      notes.messageId === messageId
    )
  })
  const text = (event?.content?.parts ?? []).map((part) => part.text ?? '').join(' ')
  const line = shorten(
    text.slice(0, MAX_USER_TEXT_LENGTH * 2),
    MAX_USER_TEXT_CHARACTERS,
    MAX_USER_TEXT_LENGTH,
  )
  return line === '' || line === UNTRANSCRIBED ? undefined : line
}

/** Returns what an MCP server claims about a tool, or undefined if the tool does not come from an MCP server. */
export function readToolClaims(tool: BaseTool): ToolClaims | undefined {
  // ADK 2.0.0 keeps the tool as its server listed it, and the name without the prefix, private.
  const listed: unknown = Reflect.get(tool, 'mcpTool')
  if (!isRecord(listed)) return undefined
  const server = readPrefix(tool.name, Reflect.get(tool, 'originalName'))
  const annotations = isRecord(listed['annotations']) ? listed['annotations'] : {}
  const title = [listed['title'], annotations['title']].find(isTitle)
  return {
    ...(server !== undefined && { server }),
    ...(title !== undefined && { title }),
    annotations: readAnnotations(annotations),
  }
}

/** Longer titles are ignored. */
const MAX_CLAIMED_TITLE = 200

function isTitle(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '' && value.length <= MAX_CLAIMED_TITLE
}

/** ADK joins the prefix of a toolset and the name of a tool with `_`. */
function readPrefix(name: string, originalName: unknown): string | undefined {
  const ending = `_${String(originalName)}`
  return name.length > ending.length && name.endsWith(ending)
    ? name.slice(0, -ending.length)
    : undefined
}
