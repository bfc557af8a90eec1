import type { CheckReply } from './check-child.ts'
import type { AgentReport, ToolReport, ToolsetReport } from './agents/report-agent.ts'
import { OWN_VERSION } from './load/versions.ts'

/** Describes an agent that was loaded, line by line. */
export function* describeReport(
  file: string,
  { exportName, adk, report }: Extract<CheckReply, { type: 'report' }>,
): Generator<string> {
  const tested = adk?.notice === undefined ? 'tested' : 'not tested'
  yield [
    `adk-stream-protocol ${OWN_VERSION}`,
    `Node ${process.versions.node}`,
    ...(adk ? [`@google/adk ${adk.version} (${tested})`] : []),
  ].join(' · ')
  yield `${file}, export ${exportName}`
  yield* section('Agents', listAgents(report))
  yield* section('Tools', report.tools.map(describeTool))
  yield* section('Toolsets', report.toolsets.flatMap(describeToolset))
  yield* section('Remote agents', report.remoteAgents)
  yield* section('Cannot wait for an approval', report.tools.flatMap(describeObstacle))
  const notices = [
    ...(adk?.notice === undefined ? [] : [adk.notice]),
    ...(report.mayHaveOtherTools
      ? ['A function of the agent may call tools that cannot be listed.']
      : []),
  ]
  yield* section('Notices', notices)
  yield* section('Problems', report.problems)
  yield ''
  yield report.problems.length === 0
    ? `${count(report.tools.length, 'tool')}, ${countGated(report)} may need approval. No problems.`
    : `${count(report.problems.length, 'problem')}. The agent cannot be served.`
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}

function countGated({ tools }: AgentReport): number {
  return tools.filter(({ need }) => need !== 'never').length
}

function* section(title: string, lines: readonly string[]): Generator<string> {
  if (lines.length === 0) return
  yield ''
  yield title
  for (const line of lines) yield `  ${line}`
}

function listAgents({ agents }: AgentReport): string[] {
  return agents.map(({ name, model }) => (model === undefined ? name : `${name}: ${model}`))
}

function describeTool({ name, agent, need, because, runsInBrowser }: ToolReport): string {
  const owner = agent === undefined ? '' : ` (${agent}${runsInBrowser ? ', in the browser' : ''})`
  return `${name}${owner}: ${NEEDS[need]}, ${because}`
}

const NEEDS: Readonly<Record<ToolReport['need'], string>> = {
  always: 'needs approval',
  sometimes: 'may need approval',
  never: 'runs without approval',
}

function describeToolset({ agent, pattern, server, tools }: ToolsetReport): string[] {
  const names = pattern ?? 'tools without a prefix'
  const from = server === undefined ? '' : ` of the MCP server ${server}`
  const owner = agent === undefined ? '' : ` (${agent})`
  const first = `${names}${from}${owner}`
  return tools === undefined
    ? [`${first}: listed with --connect`]
    : [first, ...tools.map((tool) => `  ${describeTool({ ...tool, agent: undefined })}`)]
}

function describeObstacle({ name, cannotWait }: ToolReport): string[] {
  return cannotWait === undefined ? [] : [`${name}: ${cannotWait}`]
}
