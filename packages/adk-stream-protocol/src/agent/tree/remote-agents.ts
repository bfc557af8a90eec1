import type {
  AfterA2ARequestCallback,
  BaseAgent,
  BeforeA2ARequestCallback,
  Event,
  InvocationContext,
  PluginManager,
  RemoteA2AAgentConfig,
} from '@google/adk'
import { RemoteA2AAgent, createEvent } from '@google/adk'
import type { Part } from '@google/genai'
import { z } from 'zod'

import { isRecord } from '../../protocol/guards.ts'
import { isAdkRequest } from '../tool-call.ts'
import { replaceRunMethod } from './run-methods.ts'

export type RemoteEvents = AsyncGenerator<Event, void>

type Message = Parameters<BeforeA2ARequestCallback>[1]['message']

/** A message that continues a task of a remote agent. */
export type RemoteMessage = Pick<Message, 'messageId' | 'parts'> & RemoteTask

/** Runs a remote agent: `start` sends the conversation, or the given message, and returns the events of the reply. */
export type RunRemote = (
  agent: RemoteA2AAgent,
  context: InvocationContext,
  start: (message?: RemoteMessage) => RemoteEvents,
) => RemoteEvents

/** The runs of the bridge. Other runners with the same agents are not affected. */
const runs = new WeakMap<PluginManager, RunRemote>()

const controlled = new WeakSet<RemoteA2AAgent>()

/** The messages to send in place of the conversation, by the context of the run. */
const messages = new WeakMap<InvocationContext, RemoteMessage>()

/** Runs the remote agents of a runner with `run`. */
export function runRemoteAgentsWith(manager: PluginManager, run: RunRemote): void {
  runs.set(manager, run)
}

/**
 * Lets the bridge run the remote agents among an agent and its sub-agents. Call this before each run. ADK 2.0.0 takes a pause of such an
 * agent for the end of its reply: it yields what the agent said, and starts another task for the next message.
 */
export function controlRemoteAgents(agent: BaseAgent | undefined): void {
  if (agent instanceof RemoteA2AAgent) controlRemoteAgent(agent)
  for (const subAgent of agent?.subAgents ?? []) controlRemoteAgents(subAgent)
}

function controlRemoteAgent(agent: RemoteA2AAgent): void {
  if (controlled.has(agent)) return
  controlled.add(agent)
  // ADK declares both protected or private.
  const config = Reflect.get(agent, 'a2aConfig') as RemoteA2AAgentConfig
  const { agentCard, beforeRequestCallbacks = [], afterRequestCallbacks = [] } = config
  Reflect.set(agent, 'a2aConfig', {
    ...config,
    ...(typeof agentCard === 'string' && { agentCard: toServerUrl(agentCard) }),
    // The application may change what the bridge has written.
    beforeRequestCallbacks: [writeMessage, ...beforeRequestCallbacks],
    afterRequestCallbacks: [...afterRequestCallbacks, addMessage],
  })
  replaceRunMethod<(context: InvocationContext) => RemoteEvents>(
    agent,
    'runAsyncImpl',
    (start) => (context) => {
      const run = runs.get(context.pluginManager)
      if (!run) return start.call(agent, context)
      return run(agent, context, (message) => {
        if (message) messages.set(context, message)
        return start.call(agent, context)
      })
    },
  )
}

const CARD_PATH = '.well-known/agent-card.json'

/** Returns the URL that ADK 2.0.0 takes: it adds the path of the card also to the URL of a card. */
function toServerUrl(agentCard: string): string {
  if (!URL.canParse(agentCard)) return agentCard
  const { origin, pathname } = new URL(agentCard)
  return pathname.endsWith(`/${CARD_PATH}`)
    ? `${origin}${pathname.slice(0, -CARD_PATH.length)}`
    : agentCard
}

/**
 * Throws if ADK would look for the card of a remote agent in another place than its URL says. `createBridge` calls this, because a
 * missing card is found only when the agent runs.
 */
export function checkAgentCard(agent: RemoteA2AAgent): void {
  const { agentCard } = Reflect.get(agent, 'a2aConfig') as RemoteA2AAgentConfig
  if (typeof agentCard !== 'string' || !/^https?:/i.test(agentCard)) return
  const url = URL.canParse(agentCard) ? new URL(toServerUrl(agentCard)) : undefined
  if (url && !url.pathname.endsWith('.json')) return
  throw new TypeError(
    `createBridge: \`agentCard\` of the remote agent ${agent.name} is ${agentCard}. ADK looks for ${CARD_PATH} below the URL of the server: pass that URL, such as https://travel.example.com/, or the card as an object.`,
  )
}

/** Writes the message that continues a task. In any other message, leaves out the responses to local calls, which ADK sends along. */
const writeMessage: BeforeA2ARequestCallback = (context, { message }) => {
  if (!runs.has(context.pluginManager)) return
  const answer = messages.get(context)
  messages.delete(context)
  if (answer) Object.assign(message, answer)
  else message.parts = message.parts.filter(({ metadata }) => !isCallData(metadata))
}

function isCallData(metadata: Record<string, unknown> | undefined): boolean {
  const type = metadata?.['adk_type']
  return type === 'function_call' || type === 'function_response'
}

/** Adds an empty message to a pause without one. ADK 2.0.0 yields no event for it, and the turn would end without any text. */
const addMessage: AfterA2ARequestCallback = (context, response) => {
  if (!runs.has(context.pluginManager) || !('status' in response)) return
  const { status } = response
  const isPaused = status.state === 'input-required' || status.state === 'auth-required'
  if (!isPaused || (status.message?.parts ?? []).length > 0) return
  const parts = [{ kind: 'text' as const, text: '' }]
  status.message = { kind: 'message', messageId: '', role: 'agent', ...status.message, parts }
}

interface TaskClient {
  cancelTask(params: { id: string }, options: { signal: AbortSignal }): Promise<unknown>
  getTask(
    params: { id: string; historyLength: number },
    options: { signal: AbortSignal },
  ): Promise<unknown>
}

const REQUEST_MS = 10_000

/** How many of the newest messages of a task are read. */
const HISTORY_LENGTH = 50

/** Cancels a task of a remote agent. Throws if its server refuses or does not respond. */
export async function cancelRemoteTask(agent: RemoteA2AAgent, id: string): Promise<void> {
  const client = await clientOf(agent)
  await client.cancelTask({ id }, { signal: AbortSignal.timeout(REQUEST_MS) })
}

/** Returns a task of a remote agent, with its newest messages. Throws if its server refuses or does not respond. */
export async function getRemoteTask(agent: RemoteA2AAgent, id: string): Promise<unknown> {
  const client = await clientOf(agent)
  const params = { id, historyLength: HISTORY_LENGTH }
  return client.getTask(params, { signal: AbortSignal.timeout(REQUEST_MS) })
}

async function clientOf(agent: RemoteA2AAgent): Promise<TaskClient> {
  controlRemoteAgent(agent)
  // ADK declares both private.
  const init = Reflect.get(agent, 'init') as () => Promise<void>
  await init.call(agent)
  return Reflect.get(agent, 'client') as TaskClient
}

/** ADK 2.0.0 stores the response of an A2A server under this key, in every event that it makes of one. */
const RESPONSE_KEY = 'a2a:response'

/**
 * Confines an event of a remote A2A agent to what that agent may say. Changes the event in place, before plugins, the session and
 * clients receive it. Does nothing to other events.
 *
 * ADK 2.0.0 accepts function calls, function responses, custom metadata and the author `user` from a remote server. Without this
 * function, such a server could write notes of this library, respond to local calls, and call the tools of the page.
 *
 * If the agent waits, a sentence says what for. `isWaiting` is false if the caller asks the person, or if the agent has continued.
 */
export function confineRemoteEvent(event: Event, { isWaiting = true } = {}): void {
  const { customMetadata } = event
  if (customMetadata === undefined || !isRemoteEvent(event)) return
  event.customMetadata = keepTask(customMetadata)
  if (event.author === 'user') event.author = REMOTE_AUTHOR
  const { author = REMOTE_AUTHOR, longRunningToolIds, content } = event
  delete event.longRunningToolIds
  if (!content) return
  const given = content.parts ?? []
  const waiting = new Set(longRunningToolIds)
  const parts = given.flatMap((part) => confinePart(part, author, waiting))
  const saysStatus = isWaiting && !event.partial
  const status = saysStatus
    ? describeStatus(customMetadata[RESPONSE_KEY], given, author)
    : undefined
  if (status !== undefined)
    parts.push({ text: parts.some(({ text }) => text) ? `\n\n${status}` : status })
  // Gemini rejects content without parts.
  if (parts.length === 0) delete event.content
  else event.content = { role: 'model', parts }
}

/** Whether ADK made an event of a response of an A2A server. */
export function isRemoteEvent({ customMetadata }: Event): boolean {
  return customMetadata !== undefined && Object.hasOwn(customMetadata, RESPONSE_KEY)
}

/**
 * Keeps what ADK needs to continue the task. The rest is metadata of the remote agent, and the whole response, which may contain that
 * metadata and then could not be stored as JSON.
 */
function keepTask(metadata: Record<string, unknown>): Record<string, unknown> {
  const kept = TASK_KEYS.flatMap((key) =>
    typeof metadata[key] === 'string' ? [[key, metadata[key]] as const] : [],
  )
  return Object.fromEntries(kept)
}

const TASK_KEYS = ['a2a:task_id', 'a2a:context_id']

/** The task of a remote agent, which a message can continue. */
export interface RemoteTask {
  readonly taskId: string
  readonly contextId?: string
}

/** Returns the task that an event is about. Returns undefined if the remote agent replied without one. */
export function readTask({ customMetadata = {} }: Event): RemoteTask | undefined {
  const [taskId, contextId] = TASK_KEYS.map((key) => customMetadata[key])
  if (typeof taskId !== 'string' || taskId === '') return undefined
  return { taskId, ...(typeof contextId === 'string' && { contextId }) }
}

/** A call with which a remote ADK agent asks its client for something. */
export interface RemoteRequest {
  readonly id: string
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
}

/** The reason why a remote agent waits. */
export interface RemotePause extends RemoteTask {
  readonly state: 'input-required' | 'auth-required'
  /** The words of the agent. */
  readonly text: string
  readonly requests: readonly RemoteRequest[]
  /** How many parts at the end of the event belong to the request. */
  readonly partCount: number
}

/** Returns the reason why a remote agent waits. Call this before `confineRemoteEvent`. Returns undefined if it does not wait. */
export function readPause(event: Event): RemotePause | undefined {
  const task = readTask(event)
  const response = PausedResponse.safeParse(event.customMetadata?.[RESPONSE_KEY])
  if (!task || !response.success || event.partial) return undefined
  const { state, message } = response.data.status
  const parts = message?.parts ?? []
  const text = parts
    .flatMap((part) => ('text' in part ? part.text : []))
    .join('\n')
    .trim()
  const requests = parts.flatMap((part) => ('data' in part ? part.data : []))
  return { ...task, state, text, requests, partCount: parts.length }
}

/** What the server of a remote agent says about a task. */
interface RemoteTaskStatus {
  /** The event that ADK would have made of it. Its content is empty if the task has no words. */
  readonly event: Event
  /** The ids of the messages that the task has received, as far as its server keeps them. */
  readonly messageIds: readonly string[]
}

/** Reads the response of a server to `tasks/get`. Throws if it is none. */
export function readTaskStatus(task: unknown): RemoteTaskStatus {
  const { id, contextId, status, artifacts, history } = StoredTask.parse(task)
  const replies = [...artifacts, ...(status.message ? [status.message] : [])]
  const texts = replies.flatMap(({ parts }) => parts.flatMap((part) => part.text ?? []))
  const customMetadata = {
    [RESPONSE_KEY]: task,
    'a2a:task_id': id,
    ...(contextId !== undefined && { 'a2a:context_id': contextId }),
  }
  const parts = texts.map((text) => ({ text }))
  return {
    event: createEvent({ content: { role: 'model', parts }, customMetadata }),
    messageIds: history.map(({ messageId }) => messageId),
  }
}

const Spoken = z.object({ parts: z.array(z.object({ text: z.string().optional() })) })
const StoredTask = z.object({
  id: z.string(),
  contextId: z.string().optional(),
  status: z.object({ message: Spoken.optional() }),
  artifacts: z.array(Spoken).default([]),
  history: z.array(z.object({ messageId: z.string() })).default([]),
})

const Text = z.object({ kind: z.literal('text'), text: z.string() })
const Request = z.object({
  kind: z.literal('data'),
  metadata: z.object({ adk_type: z.literal('function_call') }),
  data: z
    .object({
      id: z.string(),
      name: z.string(),
      args: z.record(z.string(), z.unknown()).default({}),
    })
    // A person cannot be asked about a call without a name.
    .catch({ id: '', name: '', args: {} }),
})
const PausedResponse = z.object({
  status: z.object({
    state: z.enum(['input-required', 'auth-required']),
    message: z
      .object({ parts: z.array(z.union([Text, Request, z.object({ kind: z.string() })])) })
      .optional(),
  }),
})

/** The author of what a remote agent says in the name of the user. */
const REMOTE_AUTHOR = 'remote_agent'

/** Names the calls of a remote agent so that they are no calls of the local agent. Removes requests to the person. */
function confinePart(part: Part, author: string, waiting: ReadonlySet<string>): Part[] {
  const { functionCall, functionResponse } = part
  if (functionCall) {
    if (isRequest(functionCall.name) || waiting.has(functionCall.id ?? '')) return []
    const { args } = functionCall
    return [
      { functionCall: { ...toRemoteCall(functionCall, author), ...(isRecord(args) && { args }) } },
    ]
  }
  if (functionResponse) {
    if (isRequest(functionResponse.name)) return []
    const { response } = functionResponse
    const named = toRemoteCall(functionResponse, author)
    return [{ functionResponse: { ...named, ...(isRecord(response) && { response }) } }]
  }
  return [part]
}

/** Returns the id and name under which the call of a remote agent is shown. */
export function toRemoteCall(
  { id, name }: { id?: string; name?: string },
  author: string,
): { id: string; name: string } {
  return { id: `a2a:${author}:${String(id)}`, name: `${author}.${String(name)}` }
}

/** Whether the name of a call, which a remote server chose, is that of one of ADK's requests to a client, or no name at all. */
export function isRequest(name: unknown): boolean {
  return typeof name !== 'string' || isAdkRequest({ name })
}

/** Says what a paused remote agent waits for. Returns undefined if it does not wait. */
function describeStatus(
  response: unknown,
  parts: readonly Part[],
  author: string,
): string | undefined {
  const status = isRecord(response) ? response['status'] : undefined
  const state = isRecord(status) ? status['state'] : undefined
  if (state === 'auth-required')
    return `The agent ${author} needs a sign-in, which this chat cannot pass on.`
  if (state !== 'input-required') return undefined
  return parts.some(({ functionCall }) => functionCall)
    ? `The agent ${author} waits for the result or approval of a call of its own, which this chat cannot pass on.`
    : `The agent ${author} waits for your reply.`
}
