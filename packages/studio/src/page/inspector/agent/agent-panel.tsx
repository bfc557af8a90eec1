import type { Timeline } from 'adk-stream-protocol/client'
import { Bot, Globe, SquareFunction, Workflow, Wrench } from 'lucide-react'

import type { AgentInfo } from '../../../studio-info.ts'
import { type Activity, arrangeGraph, findActive, type TreeNode } from './agent-tree.ts'
import { useAgentLabels } from './labels.ts'
import { ToolForm } from './tool-form.tsx'

interface AgentPanelProps {
  readonly agent: AgentInfo
  readonly timeline: Timeline | undefined
  readonly isEmulated: boolean
  readonly busy: boolean
  /** Called with a message that makes the model call a tool. */
  readonly onSend: (message: string) => void
}

/** The agents and tools of the chat with the ones that are active, and a form for each tool. */
export function AgentPanel({ agent, timeline, isEmulated, busy, onSend }: AgentPanelProps) {
  const labels = useAgentLabels()
  const active = timeline ? findActive(timeline) : NONE
  const tree = agent.graph ? arrangeGraph(agent.graph) : []
  return (
    <>
      {tree.length > 0 && (
        <section>
          <h3>{labels.graph}</h3>
          <Nodes nodes={tree} active={active} />
        </section>
      )}
      <section>
        <h3>{labels.tools}</h3>
        {agent.tools.length === 0 && <p className="inspector-empty">{labels.noTools}</p>}
        {agent.tools.map((tool) => (
          <details key={tool.name} className="tool-entry">
            <summary>
              <code>{tool.name}</code>
              {tool.approval && (
                <span className="tool-approval" data-approval={tool.approval}>
                  {labels.approvals[tool.approval]}
                </span>
              )}
            </summary>
            <ToolForm {...{ tool, isEmulated, busy, onSend }} />
          </details>
        ))}
      </section>
    </>
  )
}

const NONE: ReadonlyMap<string, Activity> = new Map()

const ICONS = {
  agent: Bot,
  workflow: Workflow,
  function: SquareFunction,
  tool: Wrench,
  remote: Globe,
} as const

interface NodesProps {
  readonly nodes: readonly TreeNode[]
  readonly active: ReadonlyMap<string, Activity>
}

function Nodes({ nodes, active }: NodesProps) {
  return (
    <ul className="agent-nodes">
      {nodes.map((node) => (
        <li key={node.id}>
          <NodeLine node={node} activity={active.get(node.name)} />
          {node.children.length > 0 && <Nodes nodes={node.children} active={active} />}
        </li>
      ))}
    </ul>
  )
}

interface NodeLineProps {
  readonly node: TreeNode
  readonly activity: Activity | undefined
}

function NodeLine({ node, activity }: NodeLineProps) {
  const labels = useAgentLabels()
  const { name, kind, model, description, next } = node
  const Icon = ICONS[kind]
  return (
    <p
      className="agent-node"
      data-activity={activity}
      aria-current={activity === undefined ? undefined : 'step'}
      title={description}
    >
      <Icon aria-hidden="true" />
      <strong>{name}</strong>
      <span>{labels.kinds[kind]}</span>
      {model !== undefined && <code>{model}</code>}
      {next.length > 0 && (
        <span>
          {labels.next} → {next.join(', ')}
        </span>
      )}
      {activity && <em>{labels.activities[activity]}</em>}
    </p>
  )
}
