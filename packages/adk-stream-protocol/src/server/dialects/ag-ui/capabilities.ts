/** What the server can do, as `AgentCapabilities` of AG-UI. */
const CAPABILITIES = {
  transport: { streaming: true, resumable: false },
  tools: { supported: true, parallelCalls: true, clientProvided: false },
  state: { snapshots: true, deltas: true, persistentState: true },
  multiAgent: { supported: true, delegation: true, handoffs: true },
  reasoning: { supported: true, streaming: true, encrypted: false },
  multimodal: {
    input: { image: true, audio: true, pdf: true },
    output: { image: false, audio: false },
  },
  humanInTheLoop: {
    supported: true,
    approvals: true,
    interrupts: true,
    approveWithEdits: true,
  },
} as const

/** The agent that a client uses if it names none. */
export const DEFAULT_AGENT = 'default'

const TYPE = 'adk'

export function describeCapabilities(name: string = DEFAULT_AGENT) {
  return { identity: { name, type: TYPE }, ...CAPABILITIES }
}

/** The answer to `GET …/info` of CopilotKit's page. The version is that of the runtime whose routes the server has. */
export function describeRuntime(agents: readonly string[], hasCards: boolean) {
  const names = [DEFAULT_AGENT, ...agents.filter((name) => name !== '' && name !== DEFAULT_AGENT)]
  const entries = names.map((name) => [
    name,
    {
      name,
      description: '',
      className: 'HttpAgent',
      capabilities: describeCapabilities(name),
    },
  ])
  return {
    version: '1.75.0',
    mode: 'sse',
    agents: Object.fromEntries(entries) as Record<string, unknown>,
    audioFileTranscriptionEnabled: false,
    a2uiEnabled: hasCards,
    ...(hasCards && { a2ui: { enabled: true } }),
    openGenerativeUIEnabled: false,
    threadEndpoints: { list: false, inspect: false, mutations: false, realtimeMetadata: false },
  }
}
