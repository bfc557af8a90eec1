import { RemoteA2AAgent } from '@google/adk'

import { findWaitingTasks, REMOTE_CALL } from '../../calls/agents/remote-questions.ts'
import { cancelTasks } from '../../calls/agents/remote-runs.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { listAgents } from '../../agent/tree/list-agents.ts'
import type { OpenModule } from '../module.ts'

/** The tasks of remote A2A agents. Those that wait for a question that was cancelled are cancelled too. */
export const openRemote: OpenModule<object> = ({ agents, onError }) => {
  const cancelling = new Set<Promise<void>>()
  return {
    isBusy: () => cancelling.size > 0,
    waitingCalls: {
      onCancelled: async (backend, chat, calls) => {
        const ids = calls.map(({ toolCallId }) => toolCallId)
        const remoteIds = ids.filter((id) => id.startsWith(REMOTE_CALL))
        if (remoteIds.length === 0) return
        const root = agents.get(await backend.agents.of(chat))
        if (!root) throw new ProtocolError('unknown-agent')
        const session = await backend.sessions.get(chat)
        const tasks = findWaitingTasks(session?.events ?? [], new Set(remoteIds))
        const findAgent = (name: string): RemoteA2AAgent | undefined =>
          [...listAgents(root)].filter(isRemote).find((agent) => agent.name === name)
        const cancelled = cancelTasks(tasks, findAgent, onError).finally(() =>
          cancelling.delete(cancelled),
        )
        cancelling.add(cancelled)
      },
    },
  }
}

function isRemote(agent: unknown): agent is RemoteA2AAgent {
  return agent instanceof RemoteA2AAgent
}
