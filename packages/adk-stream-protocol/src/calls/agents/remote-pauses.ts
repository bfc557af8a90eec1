import { randomUUID } from 'node:crypto'

import type { Event, InvocationContext, RemoteA2AAgent } from '@google/adk'
import {
  BaseTool,
  Context,
  createEvent,
  generateClientFunctionCallId,
  getFunctionCalls,
  requestInputTool,
  ToolConfirmation,
} from '@google/adk'
import type { FunctionResponse } from '@google/genai'

import type { RemoteEvents, RemotePause } from '../../agent/tree/remote-agents.ts'
import { confineRemoteEvent, readPause, toRemoteCall } from '../../agent/tree/remote-agents.ts'
import { PENDING } from '../../agent/call-responses.ts'
import type { RemoteCallNote } from '../../agent/events/event-notes.ts'
import { writeNotes } from '../../agent/events/event-notes.ts'
import { INPUT_CALL } from '../../agent/events/input-names.ts'
import type { ToolCall } from '../../agent/tool-call.ts'
import type { Ledger } from '../../approvals/ledger.ts'
import type { ResolvedTerms } from '../../approvals/policy.ts'
import { CONFIRMATION_TOOL } from '../../protocol/message.ts'
import type { TermsOptions } from '../call-kind.ts'
import { checkCall, resolveQuestionTerms } from '../call-terms.ts'
import type { RemoteCall, RemoteQuestion } from './remote-questions.ts'
import { isShownInQuestion, toQuestions, REMOTE_CALL } from './remote-questions.ts'
import type { CallOutcome } from '../run-call.ts'
import type { RunState } from '../run-state.ts'

/** What the runs of remote agents need from the bridge. */
export interface RemoteHost {
  readonly ledger: Ledger
  /** Claims a decided call. Returns its response if it does not run here. */
  readonly claim: (call: ToolCall, run: RunState) => Promise<Record<string, unknown> | undefined>
  /** Returns the run of the bridge that a remote agent is part of. */
  readonly runOf: (context: InvocationContext) => RunState | undefined
  readonly canWait: (call: ToolCall, run: RunState) => boolean
  readonly termsOf: (run: RunState) => TermsOptions
  /** Records the outcome of a claimed call. Returns false if another process has settled it. */
  readonly record: (call: ToolCall, run: RunState, outcome: CallOutcome) => Promise<boolean>
  readonly onError: (error: unknown) => void
}

/** One run of a remote agent. */
export interface RemoteRun {
  readonly agent: RemoteA2AAgent
  readonly context: InvocationContext
  readonly run: RunState
  readonly host: RemoteHost
}

/** Yields the events of a remote agent. If it waits at the end, asks the person. */
export async function* forwardEvents(remote: RemoteRun, events: RemoteEvents): RemoteEvents {
  let last: { readonly event: Event; readonly pause: RemotePause } | undefined
  for await (const event of events) {
    const pause = readPause(event)
    // A server may repeat the state of a task before it continues.
    if (last && !pause && !event.partial) {
      confineRemoteEvent(last.event, { isWaiting: false })
      yield last.event
      last = undefined
    }
    if (pause) last = { event, pause }
    else {
      confineRemoteEvent(event)
      yield event
    }
  }
  if (last) yield* ask(remote, last.event, last.pause)
}

/** Yields the calls that represent a pause, and the requests to the person. If it cannot be asked, yields what the agent said. */
async function* ask(remote: RemoteRun, event: Event, pause: RemotePause): RemoteEvents {
  const { agent, run } = remote
  const questions = toQuestions(agent.name, pause)
  const asked = questions && (await resolveAll(remote, questions))
  if (!asked) {
    confineRemoteEvent(event)
    yield event
    return
  }
  const calls = asked.map(({ toolCallId, question }) => ({
    id: toolCallId,
    name: question.toolName,
    args: question.args,
  }))
  for (const { toolCallId, question, terms } of asked) {
    run.asking.set(toolCallId, { ...terms, title: question.title })
    run.results.set(toolCallId, { name: question.toolName, response: PENDING })
  }
  const shown = questions.flatMap((question) => toShownCall(remote, question))
  if (isShownInQuestion(pause, questions) && event.content?.parts)
    event.content.parts = event.content.parts.slice(0, -pause.partCount)
  confineRemoteEvent(event, { isWaiting: false })
  const parts = [
    ...(event.content?.parts ?? []).filter(({ text }) => text !== ''),
    ...calls.map((functionCall) => ({ functionCall })),
  ]
  const inputs = calls.filter(({ name }) => name === INPUT_CALL)
  yield {
    ...event,
    content: { role: 'model', parts },
    longRunningToolIds: inputs.map(({ id }) => id),
    customMetadata: writeNotes(
      { remote: asked.map(({ toolCallId, question }) => toNote(toolCallId, question)) },
      event.customMetadata,
    ),
  }
  if (shown.length > 0) yield createReply(remote, shown)
  yield createRequest(remote, calls)
}

/** Returns the questions with their terms. Returns undefined if one of them cannot be asked here. */
async function resolveAll({ context, run, host }: RemoteRun, questions: readonly RemoteQuestion[]) {
  const asked: { toolCallId: string; question: RemoteQuestion; terms: ResolvedTerms }[] = []
  for (const question of questions) {
    // The remote server must not choose the id: the ledger knows calls by their ids.
    const toolCallId = `${REMOTE_CALL}${randomUUID()}`
    const call = toToolCall(context, { toolCallId, ...question })
    if (!host.canWait(call, run)) return undefined
    const terms = await resolveTerms(call, question, host.termsOf(run))
    if (!terms) return undefined
    asked.push({ toolCallId, question, terms })
  }
  return asked
}

async function resolveTerms(
  call: ToolCall,
  question: RemoteQuestion,
  options: TermsOptions,
): Promise<ResolvedTerms | undefined> {
  if (question.kind === 'approval') {
    const { hint, payload } = question
    return resolveQuestionTerms(call, { hint, ...(payload !== undefined && { payload }) }, options)
  }
  const check = await checkCall(call, options)
  return check.verdict === 'ask' ? check.terms : undefined
}

export function toToolCall(
  invocationContext: InvocationContext,
  { toolCallId, toolName, args }: Pick<RemoteCall, 'toolCallId' | 'toolName' | 'args'>,
): ToolCall {
  return {
    tool: toolName === INPUT_CALL ? requestInputTool : new RemoteTool(toolName),
    toolArgs: args,
    toolContext: new Context({ invocationContext, functionCallId: toolCallId }),
  }
}

/** A call of a remote agent that a person approves. It runs at the remote agent. */
export class RemoteTool extends BaseTool {
  constructor(name: string) {
    super({ name, description: 'A call of a remote agent.' })
  }

  override runAsync(): Promise<never> {
    return Promise.reject(new Error('A call of a remote agent does not run here.'))
  }
}

function toNote(toolCallId: string, { request, signsIn }: RemoteQuestion): RemoteCallNote {
  return { toolCallId, ...(request && { request }), ...(signsIn && { signsIn }) }
}

/** It stays when the call has run: the request that follows has the decision, and the remote agent may not send the result. */
const ASKED_FOR = {
  status: 'asked',
  note: 'The remote agent asked a person for the approval of this call. The request that follows says what was decided.',
} as const

/** Returns a response to the call of a remote agent that was shown before the agent asked for its approval. */
function toShownCall({ agent, context }: RemoteRun, question: RemoteQuestion): FunctionResponse[] {
  if (question.kind !== 'approval') return []
  const name = question.toolName.slice(agent.name.length + 1)
  const shown = toRemoteCall({ id: question.callId, name }, agent.name)
  const isShown = context.session.events.some((event) =>
    getFunctionCalls(event).some(({ id }) => id === shown.id),
  )
  return isShown ? [{ ...shown, response: { ...ASKED_FOR } }] : []
}

export function pickAuthor({
  context: { invocationId, branch },
  agent: { name: author },
}: RemoteRun) {
  return { author, invocationId, ...(branch !== undefined && { branch }) }
}

export function createReply(remote: RemoteRun, responses: readonly FunctionResponse[]): Event {
  const parts = responses.map((functionResponse) => ({ functionResponse }))
  return createEvent({ ...pickAuthor(remote), content: { role: 'user', parts } })
}

/** Creates the event with which ADK requests confirmations. */
function createRequest(
  remote: RemoteRun,
  calls: readonly { id: string; name: string; args: Record<string, unknown> }[],
): Event {
  const confirmations = calls.map((originalFunctionCall) => ({
    id: generateClientFunctionCallId(),
    name: CONFIRMATION_TOOL,
    args: { originalFunctionCall },
  }))
  const parts = confirmations.map((functionCall) => ({ functionCall }))
  const event = createEvent({ ...pickAuthor(remote), content: { role: 'user', parts } })
  for (const { id } of calls)
    event.actions.requestedToolConfirmations[id] = new ToolConfirmation({ confirmed: false })
  event.longRunningToolIds = confirmations.map(({ id }) => id)
  return event
}
