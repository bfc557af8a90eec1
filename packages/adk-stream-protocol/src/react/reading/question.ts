import type { UIMessage } from 'ai'

import { isRecord } from '../../protocol/guards.ts'
import { type RemoteRequestKind, readRemoteTitle } from '../../protocol/remote-titles.ts'
import { type Approval, asksForAnswer, isPending } from './approval.ts'
import { toDisplayName } from './display-name.ts'
import { findOptionName } from './form-fields.ts'
import { type Call, getToolName, isCall, isUnfinished } from './call.ts'

/** What the title of a question depends on. */
interface Question {
  readonly kind?: Approval['kind'] | undefined
  readonly title?: string | undefined
}

interface TitleLabels {
  readonly question: {
    readonly title: string
    readonly from: (asker: string) => string
    readonly remote: Readonly<Record<RemoteRequestKind, (agent: string) => string>>
  }
  readonly tool: { readonly names: Readonly<Record<string, string>> }
}

/** Returns the name of a call for people: that of the application, the given title, or the name of its tool in words. */
export function toCallTitle(
  toolName: string,
  title: string | undefined,
  labels: TitleLabels,
): string {
  return toDisplayName(toolName, labels.tool.names, toShownTitle(title, labels))
}

/** Returns the title of an approval. Says in the language of the page what a remote agent asks. */
function toShownTitle(
  title: string | undefined,
  { question }: Pick<TitleLabels, 'question'>,
): string | undefined {
  const remote = title === undefined ? undefined : readRemoteTitle(title)
  return remote ? question.remote[remote.kind](remote.agent) : title
}

/** Returns the title of a question. That of an MCP server names the server, or its tool if the server has no name. */
export function toQuestionTitle(
  { kind, title }: Question,
  args: unknown,
  labels: TitleLabels,
): string {
  const { question, tool } = labels
  const asker = kind === 'elicitation' ? readAsker(args) : undefined
  if (asker === undefined) return toShownTitle(title, labels) ?? question.title
  return question.from(toDisplayName(asker, tool.names))
}

function readAsker(args: unknown): string | undefined {
  const server = isRecord(args) ? args['server'] : undefined
  return typeof server === 'string' ? server : readAskingTool(args)
}

/** Returns the name of the tool whose call asks, for a question of an MCP server. */
export function readAskingTool(args: unknown): string | undefined {
  const tool = isRecord(args) ? args['tool'] : undefined
  return typeof tool === 'string' ? tool : undefined
}

/** Returns an answer in the words of its form: the names of options, and yes or no. */
export function toShownAnswer(
  schema: unknown,
  answer: unknown,
  words: { readonly yes: string; readonly no: string },
): unknown {
  if (!isRecord(schema)) return answer
  const { type, properties, items } = schema
  if (typeof answer === 'boolean' && type === 'boolean') return answer ? words.yes : words.no
  if (Array.isArray(answer)) return answer.map((item) => toShownAnswer(items, item, words))
  if (!isRecord(answer)) return findOptionName(schema, answer) ?? answer
  const fields = isRecord(properties) ? properties : {}
  return Object.fromEntries(
    Object.entries(answer).map(([name, value]) => [
      name,
      Object.hasOwn(fields, name) ? toShownAnswer(fields[name], value, words) : value,
    ]),
  )
}

/** What a call waits for, when an agent that it runs has asked a person. */
export interface WaitsFor {
  readonly kind: 'approval' | 'answer' | 'sign-in'
  /** What the pending call would do, the question, or the name of the service. */
  readonly description: string
  /** How many other questions are pending inside the call. */
  readonly more: number
}

/** A question to a person inside another call. */
interface InnerQuestion {
  readonly call: Call
  readonly approval: Approval
}

/**
 * Returns the pending questions inside each unfinished call of a message, by its `toolCallId`. A question names the agents that lead to
 * it (`path`), and an agent that is used as a tool has the name of its call.
 */
export function findInnerQuestions(
  { parts }: Pick<UIMessage, 'parts'>,
  approvals: ReadonlyMap<string, Approval>,
): ReadonlyMap<string, readonly InnerQuestion[]> {
  const calls = parts.filter(isCall)
  const pending = calls.flatMap((call) => {
    const approval = approvals.get(call.toolCallId)
    const isInner = approval?.path !== undefined || approval?.kind === 'elicitation'
    return approval && isInner && isPending(call, approval) ? [{ call, approval }] : []
  })
  if (pending.length === 0) return NONE
  return new Map(
    calls
      .filter((outer) => isUnfinished(outer) || RUNNING.has(outer.state))
      .map((outer) => [outer.toolCallId, pending.filter((inner) => isInside(inner, outer))]),
  )
}

/** The states of a call that runs. */
const RUNNING: ReadonlySet<Call['state']> = new Set(['input-available', 'approval-responded'])

const NONE: ReadonlyMap<string, readonly InnerQuestion[]> = new Map()

function isInside({ call, approval }: InnerQuestion, outer: Call): boolean {
  const { path = [] } = approval
  // A call whose MCP server asks keeps running. Any other call that waits has a result for now.
  if (!isUnfinished(outer) && approval.kind !== 'elicitation') return false
  // The sign-in of an approved call has the id of that call.
  return (
    call.toolCallId.startsWith(`${outer.toolCallId}.`) || path.slice(1).includes(getToolName(outer))
  )
}

/** Returns what a call waits for. Undefined if nothing is pending inside it. */
export function toWaitsFor(
  questions: readonly InnerQuestion[],
  describe: (toolName: string, call: Call, headline: string | undefined) => string,
): WaitsFor | undefined {
  const [first, ...others] = questions
  if (!first) return undefined
  const { call, approval } = first
  const more = others.length
  if (approval.signIn) return { kind: 'sign-in', description: approval.signIn.label, more }
  const name = getToolName(call)
  if (asksForAnswer(approval)) return { kind: 'answer', description: approval.hint ?? name, more }
  return { kind: 'approval', description: describe(name, call, approval.preview?.headline), more }
}
