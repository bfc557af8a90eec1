import type {
  AfterA2ARequestCallback,
  BaseAgent,
  BeforeA2ARequestCallback,
  Event,
  InvocationContext,
  PluginManager,
  RemoteA2AAgentConfig,
} from '@google/adk'
import { RemoteA2AAgent } from '@google/adk'

import type { RemoteTask } from './remote-events.ts'

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
export function relayRemoteAgents(manager: PluginManager, run: RunRemote): void {
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
  const { beforeRequestCallbacks = [], afterRequestCallbacks = [] } = config
  Reflect.set(agent, 'a2aConfig', {
    ...config,
    // The application may change what the bridge has written.
    beforeRequestCallbacks: [writeMessage, ...beforeRequestCallbacks],
    afterRequestCallbacks: [...afterRequestCallbacks, addMessage],
  })
  const start = Reflect.get(agent, 'runAsyncImpl') as (context: InvocationContext) => RemoteEvents
  const value = (context: InvocationContext): RemoteEvents => {
    const run = runs.get(context.pluginManager)
    if (!run) return start.call(agent, context)
    return run(agent, context, (message) => {
      if (message) messages.set(context, message)
      return start.call(agent, context)
    })
  }
  Reflect.defineProperty(agent, 'runAsyncImpl', { value, configurable: true, writable: true })
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

/** Adds an empty message to a pause without one. ADK 2.0.0 yields no event for it, and the turn would end without a word. */
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
  // ADK declares both private.
  const init = Reflect.get(agent, 'init') as () => Promise<void>
  await init.call(agent)
  return Reflect.get(agent, 'client') as TaskClient
}
