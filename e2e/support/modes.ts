import { isLong } from '../../test/support/long-run.ts'

type AgentMode = 'sse' | 'live'

const AGENT_MODES: readonly AgentMode[] = ['sse', 'live']

/**
 * Returns the modes in which a browser test runs: both in `npm run test:long`, one in `npm test`. The page differs in its transport
 * only. The tests of the client library and of the components run the same scenarios over both transports.
 */
export function testModes(mode: AgentMode): readonly AgentMode[] {
  return isLong ? AGENT_MODES : [mode]
}
