import type { Event } from '@google/adk'

import type { RemotePause, RemoteRequest } from '../../agent/tree/remote-agents.ts'
import { isRequest, readTask } from '../../agent/tree/remote-agents.ts'
import type { RemoteCallNote } from '../../agent/events/event-notes.ts'
import { findInner, readNotes } from '../../agent/events/event-notes.ts'
import { INPUT_CALL } from '../../agent/events/input-names.ts'
import { isDeeperThan } from '../../approvals/digest.ts'
import { isRecord } from '../../protocol/guards.ts'
import { CONFIRMATION_TOOL } from '../../protocol/message.ts'
import { toRemoteTitle } from '../../protocol/remote-titles.ts'
import { parseOriginalCall } from '../approval-events.ts'
import { isSecretField } from '../secret-fields.ts'

/** What a remote agent asks a person, as a call of this agent. */
export type RemoteQuestion = RemoteInput | RemoteApproval

interface Question extends Pick<RemoteCallNote, 'request' | 'signsIn'> {
  readonly title: string
  readonly toolName: string
  readonly args: Record<string, unknown>
}

/** A question that a person answers. */
interface RemoteInput extends Question {
  readonly kind: 'input'
}

/** A call of the remote agent that a person approves. */
interface RemoteApproval extends Question {
  readonly kind: 'approval'
  readonly hint: string
  readonly payload?: unknown
  /** The id of the call at the remote agent. */
  readonly callId: string
}

const MAX_MESSAGE = 4_000
const MAX_ARGS = 16_000
const MAX_DEPTH = 50
const MAX_QUESTIONS = 10
const NAME = /^[\w.-]{1,128}$/

/**
 * Returns what a remote agent asks. Returns undefined if a person cannot answer it here: it asks for credentials, which must not pass
 * through a page, or its request is malformed or too large.
 */
export function toQuestions(agent: string, pause: RemotePause): RemoteQuestion[] | undefined {
  const { state, text, requests } = pause
  if (isDeeperThan(requests, MAX_DEPTH)) return undefined
  if (state === 'auth-required') return requests.length > 0 ? undefined : [toSignIn(agent, text)]
  if (requests.length === 0) {
    const message = toMessage(text) ?? `The agent ${agent} waits for your reply.`
    return [{ ...toInput(agent), args: { agent, message } }]
  }
  const questions = requests.map((request) => toQuestion(agent, request, text))
  const read = questions.filter((question) => question !== undefined)
  const isComplete = read.length === questions.length && read.length <= MAX_QUESTIONS
  return isComplete && read.every(isSmall) ? read : undefined
}

/** Whether the words of an agent are part of its question, so that they need not be shown beside it. */
export function isShownInQuestion({ text }: RemotePause, questions: readonly RemoteQuestion[]) {
  return questions.some(
    (question) =>
      (question.kind === 'approval' ? question.hint : question.args['message']) === text,
  )
}

function toInput(agent: string): Omit<RemoteInput, 'args'> {
  return { kind: 'input', toolName: INPUT_CALL, title: toRemoteTitle('answer', agent) }
}

/** The person signs in elsewhere. The answer only says that the agent can continue. */
function toSignIn(agent: string, text: string): RemoteInput {
  const message = toMessage(text) ?? `The agent ${agent} waits until you have signed in.`
  return {
    ...toInput(agent),
    title: toRemoteTitle('signIn', agent),
    signsIn: true,
    args: { agent, message, response_schema: NO_FIELDS, ...findLink(text) },
  }
}

const NO_FIELDS = { type: 'object', properties: {}, additionalProperties: false }

/** Returns the first link in a text. Only https is safe to open. */
function findLink(text: string): { url: string; host: string } | undefined {
  const [found = ''] = /https:\/\/[^\s<>"'`)\]}]+/.exec(text) ?? []
  if (!URL.canParse(found)) return undefined
  const { href, host, username, password } = new URL(found)
  // `https://bank.example@evil.example` looks like another host.
  return username === '' && password === '' ? { url: href, host } : undefined
}

function toQuestion(
  agent: string,
  request: RemoteRequest,
  text: string,
): RemoteQuestion | undefined {
  const { id, name, args } = request
  const origin = { request: { id, name } }
  if (id === '' || !NAME.test(name)) return undefined
  if (name === CONFIRMATION_TOOL) return toApproval(agent, request, text)
  if (name === INPUT_CALL) {
    const { message, response_schema: schema } = args
    if (asksForSecret(schema)) return undefined
    const words =
      (typeof message === 'string' ? toMessage(message) : undefined) ??
      toMessage(text) ??
      `The agent ${agent} waits for your reply.`
    const shown = { agent, message: words, ...(isRecord(schema) && { response_schema: schema }) }
    return { ...toInput(agent), ...origin, args: shown }
  }
  if (isRequest(name)) return undefined
  const words = toMessage(text) ?? `The agent ${agent} waits for the result of its call ${name}.`
  return { ...toInput(agent), ...origin, args: { agent, message: words, call: { name, args } } }
}

function toApproval(
  agent: string,
  { id, name, args }: RemoteRequest,
  text: string,
): RemoteApproval | undefined {
  const original = parseOriginalCall({ ...args })
  const confirmation = isRecord(args['toolConfirmation']) ? args['toolConfirmation'] : {}
  const { hint, payload } = confirmation
  if (!original || !NAME.test(original.name)) return undefined
  const words = (typeof hint === 'string' ? toMessage(hint) : undefined) ?? toMessage(text)
  return {
    kind: 'approval',
    title: toRemoteTitle('approval', agent),
    toolName: `${agent}.${original.name}`,
    args: original.args,
    hint: words ?? `The agent ${agent} asks to run ${original.name}.`,
    callId: original.id,
    request: { id, name },
    ...(payload !== undefined && payload !== null && { payload }),
  }
}

/** Returns the words of an agent, unless there are none or too many for a question. */
function toMessage(text: string): string | undefined {
  const words = text.trim()
  return words === '' || words.length > MAX_MESSAGE ? undefined : words
}

function asksForSecret(schema: unknown): boolean {
  if (!isRecord(schema) || !isRecord(schema['properties'])) return false
  return Object.entries(schema['properties']).some(
    ([name, field]) => isSecretField(name, field) || asksForSecret(field),
  )
}

function isSmall(question: RemoteQuestion): boolean {
  const shown = [question.args, question.kind === 'approval' ? question.payload : undefined]
  return JSON.stringify(shown).length <= MAX_ARGS
}

/** The prefix of the ids of calls that represent questions of a remote agent. */
export const REMOTE_CALL = 'remote-'

/** A task of a remote agent that waits. */
export interface WaitingTask {
  /** The name of the agent. */
  readonly agent: string
  readonly taskId: string
}

/** Returns the tasks of the remote agents that asked with these calls, at any depth. */
export function findWaitingTasks(
  events: readonly Event[],
  toolCallIds: ReadonlySet<string>,
): WaitingTask[] {
  const tasks = new Map<string, WaitingTask>()
  for (const event of events) {
    const inner = findInner(event) ?? event
    const asked = readNotes(inner).remote?.some(({ toolCallId }) => toolCallIds.has(toolCallId))
    const task = asked ? readTask(inner) : undefined
    if (task) tasks.set(task.taskId, { agent: inner.author ?? '', taskId: task.taskId })
  }
  return [...tasks.values()]
}

/** A call that represents a question of a remote agent. */
export interface RemoteCall extends RemoteCallNote {
  readonly toolName: string
  readonly args: Record<string, unknown>
}
