import { once } from 'node:events'

import type { AgentCard, Message, Part, TaskState } from '@a2a-js/sdk'
import type { AgentExecutor } from '@a2a-js/sdk/server'
import { DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server'
import { jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express'
import type { RunConfig, RunnerConfig } from '@google/adk'
import { A2AAgentExecutor, InMemorySessionService, RemoteA2AAgent } from '@google/adk'
import express from 'express'

import { portOf } from '../../../../test/support/listen.ts'

/** What a remote agent replies: a message, or a task in a state with a message. */
export interface RemoteReply {
  readonly parts: readonly Part[]
  /** Default: a message without a task. */
  readonly state?: TaskState
  /** Default `agent`. */
  readonly role?: Message['role']
  readonly metadata?: Record<string, unknown>
  /** Whether the parts arrive in artifacts: first partially, then complete. */
  readonly asArtifact?: true
}

/** A message that a remote agent received. */
export interface RemoteRequest {
  /** The parts as JSON. */
  readonly text: string
  readonly parts: readonly Part[]
  readonly taskId: string
  readonly contextId: string
  readonly messageId: string
}

export interface A2aServer extends AsyncDisposable {
  readonly agent: RemoteA2AAgent
  readonly card: AgentCard
  /** What the remote agent received. */
  readonly received: RemoteRequest[]
  /** Returns the state of a task. */
  readonly stateOf: (taskId: string) => Promise<TaskState | undefined>
}

/** A real A2A server over HTTP that replies as a test says, and ADK's agent in front of it. */
export async function serveA2a(
  reply: (request: RemoteRequest) => RemoteReply | Promise<RemoteReply>,
  options: { readonly streaming?: boolean } = {},
): Promise<A2aServer> {
  const received: RemoteRequest[] = []
  const executor: AgentExecutor = {
    execute: async ({ userMessage, taskId, contextId, task: known }, bus) => {
      const { parts: given, messageId: sentId } = userMessage
      const request = {
        text: JSON.stringify(given),
        parts: given,
        taskId,
        contextId,
        messageId: sentId,
      }
      received.push(request)
      const { parts, state, role = 'agent', metadata = {}, asArtifact } = await reply(request)
      const messageId = crypto.randomUUID()
      const message: Message = {
        kind: 'message',
        messageId,
        role,
        parts: [...parts],
        contextId,
        metadata,
      }
      const start = (first: TaskState): void => {
        if (!known) bus.publish({ kind: 'task', id: taskId, contextId, status: { state: first } })
      }
      if (asArtifact) {
        start('working')
        const artifact = { artifactId: 'one', parts: [...parts] }
        const update = { kind: 'artifact-update', taskId, contextId, metadata } as const
        bus.publish({ ...update, artifact, append: false, lastChunk: false })
        bus.publish({ ...update, artifact, append: true, lastChunk: true })
        const status = { state: 'completed' } as const
        bus.publish({ kind: 'status-update', taskId, contextId, status, final: true })
      } else if (state) {
        const status = { state, ...(parts.length > 0 && { message: { ...message, taskId } }) }
        start('submitted')
        bus.publish({ kind: 'status-update', taskId, contextId, status, final: true, metadata })
      } else bus.publish(message)
      bus.finished()
    },
    // The server cancels a task that waits by itself.
    cancelTask: () => Promise.resolve(),
  }
  return { ...(await serveExecutor(executor, options)), received }
}

/** ADK's own A2A server with an agent behind it. */
export function serveAdkAgent(
  agent: NonNullable<RunnerConfig['agent']>,
  runConfig: RunConfig = {},
): Promise<Omit<A2aServer, 'received'>> {
  const sessionService = new InMemorySessionService()
  const runner = { agent, appName: 'remote', sessionService }
  return serveExecutor(new A2AAgentExecutor({ runner, runConfig }))
}

async function serveExecutor(
  executor: AgentExecutor,
  { streaming = true }: { readonly streaming?: boolean } = {},
) {
  const app = express()
  const http = app.listen(0, '127.0.0.1')
  await once(http, 'listening')
  const port = portOf(http)
  const card: AgentCard = {
    name: 'helper',
    description: 'Helps.',
    url: `http://127.0.0.1:${port}/`,
    version: '1.0.0',
    protocolVersion: '0.3.0',
    capabilities: { streaming },
    defaultInputModes: ['text'],
    defaultOutputModes: ['text'],
    skills: [],
  }
  const tasks = new InMemoryTaskStore()
  const requestHandler = new DefaultRequestHandler(card, tasks, executor)
  app.use(jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }))
  return {
    agent: new RemoteA2AAgent({ name: 'helper', description: 'Helps.', agentCard: card }),
    card,
    stateOf: async (taskId: string) => (await tasks.load(taskId))?.status.state,
    async [Symbol.asyncDispose]() {
      const closed = once(http, 'close')
      http.close()
      http.closeAllConnections()
      await closed
    },
  }
}
