import { once } from 'node:events'
import type { AddressInfo } from 'node:net'

import type { AgentCard, Message, Part, Task, TaskState } from '@a2a-js/sdk'
import { DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server'
import { jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express'
import { RemoteA2AAgent } from '@google/adk'
import express from 'express'

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

export interface A2aServer extends AsyncDisposable {
  readonly agent: RemoteA2AAgent
  /** What the remote agent received. */
  readonly received: { readonly text: string; readonly contextId: string }[]
}

/** A real A2A server over HTTP, and ADK's agent in front of it. */
export async function serveA2a(
  reply: () => RemoteReply,
  { streaming = true }: { readonly streaming?: boolean } = {},
): Promise<A2aServer> {
  const received: { text: string; contextId: string }[] = []
  const app = express()
  const http = app.listen(0, '127.0.0.1')
  await once(http, 'listening')
  // A server that listens on a port has such an address.
  const { port } = http.address() as AddressInfo
  const agentCard: AgentCard = {
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
  const handler = new DefaultRequestHandler(agentCard, new InMemoryTaskStore(), {
    execute: async ({ userMessage, taskId, contextId }, bus) => {
      received.push({ text: JSON.stringify(userMessage.parts), contextId })
      const { parts, state, role = 'agent', metadata = {}, asArtifact } = reply()
      const messageId = crypto.randomUUID()
      const message: Message = {
        kind: 'message',
        messageId,
        role,
        parts: [...parts],
        contextId,
        metadata,
      }
      if (asArtifact) {
        const task: Task = { kind: 'task', id: taskId, contextId, status: { state: 'working' } }
        bus.publish(task)
        const artifact = { artifactId: 'one', parts: [...parts] }
        const update = { kind: 'artifact-update', taskId, contextId, metadata } as const
        bus.publish({ ...update, artifact, append: false, lastChunk: false })
        bus.publish({ ...update, artifact, append: true, lastChunk: true })
        const status = { state: 'completed' } as const
        bus.publish({ kind: 'status-update', taskId, contextId, status, final: true })
      } else if (state) {
        const status = { state, message: { ...message, taskId } }
        const task: Task = { kind: 'task', id: taskId, contextId, status: { state: 'submitted' } }
        bus.publish(task)
        bus.publish({ kind: 'status-update', taskId, contextId, status, final: true, metadata })
      } else bus.publish(message)
      bus.finished()
    },
    cancelTask: () => Promise.resolve(),
  })
  app.use(jsonRpcHandler({ requestHandler: handler, userBuilder: UserBuilder.noAuthentication }))
  return {
    agent: new RemoteA2AAgent({ name: 'helper', description: 'Helps.', agentCard }),
    received,
    async [Symbol.asyncDispose]() {
      const closed = once(http, 'close')
      http.close()
      http.closeAllConnections()
      await closed
    },
  }
}
