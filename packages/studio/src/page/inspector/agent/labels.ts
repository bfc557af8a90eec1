import { useLanguage, type Language } from '../../i18n/language.tsx'
import type { Activity } from './agent-tree.ts'

type Approval = 'always' | 'sometimes' | 'never'
type Kind = 'agent' | 'workflow' | 'function' | 'tool' | 'remote'

/** Labels of the panel about the agent. */
export interface AgentLabels {
  readonly graph: string
  readonly kinds: Readonly<Record<Kind, string>>
  readonly activities: Readonly<Record<Activity, string>>
  /** Leads to other nodes. */
  readonly next: string
  readonly tools: string
  readonly noTools: string
  readonly approvals: Readonly<Record<Approval, string>>
  readonly required: string
  readonly json: string
  readonly notJson: string
  /** No value is chosen. */
  readonly none: string
  readonly run: (tool: string) => string
  readonly runsByEmulator: string
  readonly runsByModel: string
  readonly busy: string
  /** The message that asks a model to call the tool. */
  readonly request: (tool: string, args: string) => string
}

const en: AgentLabels = {
  graph: 'Agents and tools',
  kinds: {
    agent: 'agent',
    workflow: 'workflow',
    function: 'function',
    tool: 'tool',
    remote: 'remote agent',
  },
  activities: { running: 'running', waiting: 'waiting for approval' },
  next: 'then',
  tools: 'Run a tool',
  noTools: 'The agent has no tools that can be listed.',
  approvals: {
    always: 'needs approval',
    sometimes: 'may need approval',
    never: 'runs at once',
  },
  required: 'required',
  json: 'as JSON',
  notJson: 'This is not valid JSON.',
  none: '(none)',
  run: (tool) => `Run ${tool}`,
  runsByEmulator:
    'Sends a message that makes the emulator call the tool. An approval is asked for as usual.',
  runsByModel:
    'Sends a message that asks the model to call the tool. The model may do something else.',
  busy: 'Wait for the end of the reply.',
  request: (tool, args) => `Call the tool ${tool} with exactly these arguments: ${args}`,
}

const ja: AgentLabels = {
  graph: 'エージェントとツール',
  kinds: {
    agent: 'エージェント',
    workflow: 'ワークフロー',
    function: '関数',
    tool: 'ツール',
    remote: 'リモートエージェント',
  },
  activities: { running: '実行中', waiting: '承認待ち' },
  next: '次',
  tools: 'ツールを実行',
  noTools: '一覧にできるツールがありません。',
  approvals: { always: '承認が必要', sometimes: '承認が必要な場合あり', never: 'すぐに実行' },
  required: '必須',
  json: 'JSON形式',
  notJson: '有効なJSONではありません。',
  none: '（なし）',
  run: (tool) => `${tool} を実行`,
  runsByEmulator:
    'エミュレーターにツールを呼び出させるメッセージを送信します。承認は通常どおり求められます。',
  runsByModel:
    'ツールの呼び出しをモデルに依頼するメッセージを送信します。モデルが別の動作をすることもあります。',
  busy: '応答が終わるまでお待ちください。',
  request: (tool, args) => `ツール ${tool} を、次の引数のとおりに呼び出してください：${args}`,
}

const LABELS: Readonly<Record<Language, AgentLabels>> = { en, ja }

export function useAgentLabels(): AgentLabels {
  return LABELS[useLanguage().language]
}
