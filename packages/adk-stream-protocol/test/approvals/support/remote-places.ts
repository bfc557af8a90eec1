import type { BaseLlm } from '@google/adk'
import { AgentTool } from '@google/adk'

import type { A2aServer } from '../../support/a2a-server.ts'
import { assistant } from '../../support/agents.ts'

/** Where a remote agent can wait below another agent, with a message that reaches it. */
export const PLACES_BELOW = {
  'a sub-agent': {
    agent: (model: BaseLlm, remote: A2aServer) => assistant(model, { subAgents: [remote.agent] }),
    send: '[[call transfer_to_agent {"agentName":"helper"}]]',
  },
  'an agent used as a tool': {
    agent: (model: BaseLlm, remote: A2aServer) =>
      assistant(model, { tools: [new AgentTool({ agent: remote.agent })] }),
    send: '[[call helper {"request":"Plan a trip."}]][[then]][[say Planned.]]',
  },
} as const
