import type { Lane, TimelineEntry } from './timeline-rows.ts'
import type { Span } from './trace.ts'

/** The stages of an approval, in order. */
export type ApprovalStage = 'requested' | 'decided' | 'started' | 'ended'

type TurnState = Extract<TimelineEntry, { type: 'turn' }>['state']
type ToolState = Extract<TimelineEntry, { type: 'tool' }>['state']
type FactName =
  | 'started'
  | 'ended'
  | 'agent'
  | 'firstToken'
  | 'tokens'
  | 'state'
  | 'votes'
  | 'vote'
  | 'withdrawn'
  | 'decided'
  | 'reason'
  | 'expires'
  | 'callStarted'
  | 'callEnded'
  | 'code'

interface NextApprover {
  readonly call: string
  readonly given: number
  readonly needed: number
  readonly until: string
  readonly byReader: boolean
  readonly votedByReader: boolean
}

/** Labels of the inspector. */
export interface InspectorLabels {
  readonly locale: string
  /** A time on another day than today. */
  readonly timeOnDay: (time: string, day: string) => string
  readonly title: string
  readonly timeline: string
  readonly agent: string
  readonly session: string
  readonly approvals: string
  readonly wire: string
  readonly recording: string
  readonly streams: string
  readonly nothingYet: string
  /** A call that had not ended when its stream did. */
  readonly unfinished: string
  readonly noMatch: (filter: string) => string
  readonly notStored: string
  readonly noTurns: string
  readonly loading: string
  readonly unreadableTimeline: string
  readonly earlier: string
  readonly state: string
  readonly turn: string
  readonly overview: string
  /** The legend of the places where the axis leaves out time. */
  readonly shortened: string
  readonly lanes: Readonly<Record<Lane, string>>
  readonly turnStates: Readonly<Record<TurnState, string>>
  readonly toolStates: Readonly<Record<ToolState, string>>
  readonly tokens: (count: number) => string
  readonly usage: (input: number, output: number) => string
  readonly interruption: string
  readonly handOver: Readonly<Record<'agent' | 'browser' | 'server', (name: string) => string>>
  readonly you: string
  readonly show: string
  readonly showInChat: string
  readonly estimate: string
  /** The request to the model, and its reply. */
  readonly modelCall: Readonly<
    Record<'title' | 'request' | 'reply' | 'loading' | 'failed' | 'note', string>
  >
  readonly notInChat: string
  readonly error: string
  readonly facts: Readonly<Record<FactName, string>>
  readonly noApprovals: string
  readonly triggers: Readonly<Record<string, string>>
  readonly firstChunk: string
  readonly firstWord: string
  readonly whole: string
  readonly open: string
  readonly chunks: (count: number) => string
  readonly spans: Readonly<Record<Span['kind'], string>>
  readonly reading: string
  readonly unreadable: string
  readonly record: string
  readonly votes: (given: number, needed: number) => string
  /** Stages that an approval has reached, by the type in the audit record. */
  readonly stops: Readonly<Record<string, string>>
  /** Stages that an approval has not reached. */
  readonly upcoming: Readonly<Record<ApprovalStage, string>>
  readonly filter: string
  readonly sent: string
  readonly received: string
  readonly sound: (sent: string, received: string) => string
  readonly waitsFor: {
    readonly you: string
    readonly model: string
    readonly tool: (call: string) => string
    readonly start: (call: string) => string
    readonly browser: (call: string) => string
    readonly application: (call: string) => string
    /** The reader decides. */
    readonly decision: (wait: { call: string; needed: number; until: string }) => string
    /** Other people decide. */
    readonly others: (wait: { call: string; names: readonly string[]; until: string }) => string
    /** Some have approved, and others must. */
    readonly nextApprover: (wait: NextApprover) => string
    readonly more: (count: number) => string
    readonly connection: (seconds: number | undefined) => string
  }
  readonly recordingIntro: string
  readonly startRecording: string
  readonly stopRecording: string
  readonly recordingNow: string
  readonly recorded: (size: string) => string
  readonly download: string
  readonly play: string
  readonly openFile: string
  readonly brokenFile: string
  readonly replay: string
  readonly pace: string
  readonly paces: Readonly<Record<'real-time' | 'fast' | 'step', string>>
  readonly step: string
  readonly playing: string
  readonly paused: string
  readonly over: string
  readonly pause: string
  readonly continue: string
  readonly position: string
  readonly progress: (done: number, total: number) => string
  readonly endReplay: string
}

export const en: InspectorLabels = {
  locale: 'en',
  timeOnDay: (time, day) => `${time} on ${day}`,
  title: 'Inspector',
  timeline: 'Timeline',
  agent: 'Agent',
  session: 'Session',
  approvals: 'Approvals',
  wire: 'Wire',
  recording: 'Recording',
  streams: 'Streams',
  nothingYet:
    'No traffic since this page was loaded. Send a message to see it here. The timeline shows what happened before.',
  noMatch: (filter) => `No traffic of a type with “${filter}”.`,
  notStored: 'The server does not store chats of this connection. See Streams.',
  noTurns: 'Nothing has happened in this chat yet. Send a message to see it here.',
  loading: 'Loading the timeline…',
  unreadableTimeline: 'The timeline could not be loaded. It is read again when something happens.',
  earlier: 'Show earlier turns',
  state: 'Session state',
  turn: 'Turn',
  shortened: 'shortened',
  overview: 'All turns on one time axis. The list below contains the same entries.',
  lanes: { model: 'Model', tool: 'Tool', wait: 'Approval', network: 'Network' },
  turnStates: {
    running: 'running',
    waiting: 'waiting',
    completed: 'completed',
    stopped: 'stopped',
    failed: 'failed',
  },
  toolStates: {
    running: 'running',
    succeeded: 'done',
    failed: 'failed',
    unknown: 'unknown: the server crashed',
  },
  tokens: (count) => `${count.toLocaleString('en')} tokens`,
  usage: (input, output) => `${input.toLocaleString('en')} in, ${output.toLocaleString('en')} out`,
  interruption: 'Interrupted',
  handOver: {
    agent: (name) => `Agent ${name} continues`,
    browser: () => 'The browser runs the call',
    server: () => 'Another server recovered the call',
  },
  you: 'you',
  show: 'Show',
  showInChat: 'Show in the chat',
  estimate: 'Estimate, by the prices in the settings of the server',
  modelCall: {
    title: 'Request and reply of the model',
    request: 'Request',
    reply: 'Reply',
    loading: 'Loading…',
    failed: 'The server no longer has this call.',
    note: 'Kept in the memory of a development server. Secrets and files are left out.',
  },
  notInChat: 'This is no longer in the chat.',
  error: 'error',
  facts: {
    started: 'Start',
    ended: 'End',
    agent: 'Agent',
    firstToken: 'First token after',
    tokens: 'Tokens',
    state: 'State',
    votes: 'Approvals',
    vote: 'Approved by',
    withdrawn: 'Withdrawn by',
    decided: 'Decision',
    reason: 'Reason',
    expires: 'Expires',
    callStarted: 'Call started',
    callEnded: 'Call ended',
    code: 'Code',
  },
  noApprovals: 'No call in this chat has needed approval.',
  triggers: {
    'submit-message': 'Request',
    'regenerate-message': 'Regenerated',
    resume: 'Resumed',
    turn: 'Started by the server',
  },
  firstChunk: 'first chunk',
  firstWord: 'first token',
  whole: 'total',
  open: 'streaming',
  unfinished: 'waiting',
  chunks: (count) => (count === 1 ? '1 chunk' : `${count.toLocaleString('en')} chunks`),
  spans: { reasoning: 'reasoning', text: 'text', call: 'call', approval: 'approval' },
  reading: 'Loading the audit record…',
  unreadable: 'The audit record could not be loaded.',
  record: 'Audit record',
  votes: (given, needed) => `${given} of ${needed} approved`,
  stops: {
    requested: 'requested',
    voted: 'approved by one',
    withdrawn: 'withdrawn',
    approved: 'approved',
    denied: 'denied',
    expired: 'expired',
    cancelled: 'cancelled',
    started: 'started',
    succeeded: 'done',
    failed: 'failed',
    lost: 'unknown: the server crashed',
  },
  upcoming: { requested: 'requested', decided: 'decision', started: 'start', ended: 'result' },
  filter: 'Filter by type',
  sent: 'sent',
  received: 'received',
  sound: (sent, received) => `Audio: ${sent} sent, ${received} received`,
  waitsFor: {
    you: 'Idle: waiting for your message.',
    model: 'Waiting for the model.',
    tool: (call) => `Waiting for a tool: ${call}.`,
    start: (call) => `Approved, and waiting for a server to start it: ${call}.`,
    browser: (call) => `Waiting for this browser to run a tool: ${call}.`,
    application: (call) => `Waiting for the application to complete: ${call}.`,
    decision: ({ call, needed, until }) =>
      `Waiting for your decision: ${call}.${needed > 1 ? ` Needs ${needed} approvals.` : ''} Expires at ${until}.`,
    others: ({ call, names, until }) =>
      `Waiting for ${names.join(' or ') || 'an approver'} to decide: ${call}. Expires at ${until}.`,
    nextApprover: ({ call, given, needed, until, byReader, votedByReader }) =>
      byReader
        ? `Waiting for your approval: ${call}. ${given} of ${needed} approved. Expires at ${until}.`
        : `Waiting for ${needed - given === 1 && given === 1 ? 'a second approver' : 'another approver'}: ${call}. ${given} of ${needed} approved${votedByReader ? ', including you' : ''}. Expires at ${until}.`,
    more: (count) => ` ${count} more in this chat.`,
    connection: (seconds) =>
      seconds === undefined
        ? 'Connection lost. Reconnecting…'
        : `Connection lost. Next attempt in ${seconds} s.`,
  },
  recordingIntro:
    'Records the traffic between this page and the server, including message text. Nothing leaves this page until you download it.',
  startRecording: 'Record',
  stopRecording: 'Stop recording',
  recordingNow: 'Recording…',
  recorded: (size) => `${size} recorded.`,
  download: 'Download',
  play: 'Play',
  openFile: 'Open recording…',
  brokenFile: 'This file is not a recording. Choose a .jsonl file that was saved here.',
  replay: 'Replay',
  pace: 'Speed',
  paces: { 'real-time': 'Real time', fast: 'Instant', step: 'Step' },
  step: 'Next step',
  playing: 'Playing',
  paused: 'Paused',
  over: 'Finished',
  pause: 'Pause',
  continue: 'Play',
  position: 'Position in the recording',
  progress: (done, total) => `${done} of ${total}`,
  endReplay: 'Back to the chat',
}

export const ja: InspectorLabels = {
  locale: 'ja',
  timeOnDay: (time, day) => `${day} ${time}`,
  title: 'インスペクター',
  timeline: 'タイムライン',
  agent: 'エージェント',
  session: 'セッション',
  approvals: '承認',
  wire: '通信',
  recording: '記録',
  streams: 'ストリーム',
  nothingYet:
    'このページを読み込んでから、通信はありません。メッセージを送信すると、ここに表示されます。以前の内容は「タイムライン」にあります。',
  noMatch: (filter) => `種類に「${filter}」を含む通信はありません。`,
  notStored: 'この接続のチャットはサーバーに保存されません。「ストリーム」を見てください。',
  noTurns: 'このチャットではまだ何も起きていません。メッセージを送信すると、ここに表示されます。',
  loading: 'タイムラインを読み込んでいます…',
  unreadableTimeline: 'タイムラインを読み込めませんでした。次の変化があったときに読み直します。',
  earlier: 'これより前のターンを表示',
  state: 'セッションの状態',
  turn: 'ターン',
  shortened: '短縮',
  overview: 'すべてのターンを一つの時間軸に表示しています。下の一覧と同じ内容です。',
  lanes: { model: 'モデル', tool: 'ツール', wait: '承認待ち', network: '通信' },
  turnStates: {
    running: '実行中',
    waiting: '待機中',
    completed: '完了',
    stopped: '停止',
    failed: '失敗',
  },
  toolStates: {
    running: '実行中',
    succeeded: '完了',
    failed: '失敗',
    unknown: '不明（実行中にサーバーが停止）',
  },
  tokens: (count) => `${count.toLocaleString('ja')} トークン`,
  usage: (input, output) =>
    `入力 ${input.toLocaleString('ja')}、出力 ${output.toLocaleString('ja')}`,
  interruption: '中断',
  handOver: {
    agent: (name) => `エージェント ${name} に交代`,
    browser: () => 'ブラウザーが実行',
    server: () => '別のサーバーが引き継ぎ',
  },
  you: 'あなた',
  show: '表示',
  showInChat: 'チャットで表示',
  estimate: 'サーバーに設定された単価による概算',
  modelCall: {
    title: 'モデルへのリクエストと応答',
    request: 'リクエスト',
    reply: '応答',
    loading: '読み込んでいます…',
    failed: 'この呼び出しはサーバーに残っていません。',
    note: '開発用サーバーのメモリーにだけ保存されます。秘密情報とファイルは含まれません。',
  },
  notInChat: 'チャットにはもうありません。',
  error: 'エラー',
  facts: {
    started: '開始',
    ended: '終了',
    agent: 'エージェント',
    firstToken: '最初のトークンまで',
    tokens: 'トークン',
    state: '状態',
    votes: '承認数',
    vote: '承認した人',
    withdrawn: '取り下げた人',
    decided: '判断',
    reason: '理由',
    expires: '期限',
    callStarted: '実行開始',
    callEnded: '実行終了',
    code: 'コード',
  },
  noApprovals: 'このチャットでは、まだ承認が必要になっていません。',
  triggers: {
    'submit-message': 'リクエスト',
    'regenerate-message': '再生成',
    resume: '再開',
    turn: 'サーバー発の応答',
  },
  firstChunk: '最初のチャンク',
  firstWord: '最初のトークン',
  whole: '合計',
  open: '受信中',
  unfinished: '待機中',
  chunks: (count) => `${count.toLocaleString('ja')} チャンク`,
  spans: { reasoning: '思考', text: '回答', call: '呼び出し', approval: '承認待ち' },
  reading: '監査記録を読み込んでいます…',
  unreadable: '監査記録を読み込めませんでした。',
  record: '監査記録',
  votes: (given, needed) => `${needed}人中${given}人が承認`,
  stops: {
    requested: '依頼',
    voted: '一人が承認',
    withdrawn: '取り下げ',
    approved: '承認',
    denied: '拒否',
    expired: '期限切れ',
    cancelled: '取り消し',
    started: '実行開始',
    succeeded: '完了',
    failed: '失敗',
    lost: '不明（実行中にサーバーが停止）',
  },
  upcoming: { requested: '依頼', decided: '承認・拒否', started: '実行', ended: '結果' },
  filter: '種類で絞り込む',
  sent: '送信',
  received: '受信',
  sound: (sent, received) => `音声：送信 ${sent}、受信 ${received}`,
  waitsFor: {
    you: 'メッセージをお待ちしています。',
    model: 'モデルの応答を待っています。',
    tool: (call) => `ツールの結果を待っています：${call}`,
    start: (call) => `承認済みです。サーバーが実行を始めるのを待っています：${call}`,
    browser: (call) => `このブラウザーでの実行を待っています：${call}`,
    application: (call) => `アプリケーションの完了を待っています：${call}`,
    decision: ({ call, needed, until }) =>
      `あなたの承認を待っています：${call}（${needed > 1 ? `${needed}人の承認が必要、` : ''}期限 ${until}）`,
    others: ({ call, names, until }) =>
      `${names.join('・') || '承認者'} の承認を待っています：${call}（期限 ${until}）`,
    nextApprover: ({ call, given, needed, until, byReader, votedByReader }) =>
      byReader
        ? `あなたの承認を待っています：${call}（${needed}人中${given}人が承認、期限 ${until}）`
        : `${needed - given === 1 && given === 1 ? '二人目' : '次の人'}の承認を待っています：${call}（${needed}人中${given}人${votedByReader ? '（あなた）' : ''}が承認、期限 ${until}）`,
    more: (count) => `。ほかに${count}件あります。`,
    connection: (seconds) =>
      seconds === undefined
        ? '接続が切れました。再接続しています…'
        : `接続が切れました。${seconds}秒後に再接続します。`,
  },
  recordingIntro:
    'このページとサーバーの間の通信を、メッセージの内容も含めて記録します。ダウンロードするまで、このページの外には出ません。',
  startRecording: '記録を開始',
  stopRecording: '記録を停止',
  recordingNow: '記録中…',
  recorded: (size) => `${size} を記録しました。`,
  download: 'ダウンロード',
  play: '再生',
  openFile: '記録を開く…',
  brokenFile: 'このファイルは記録ではありません。ここで保存した .jsonl ファイルを選んでください。',
  replay: '再生',
  pace: '再生速度',
  paces: { 'real-time': '実際の速度', fast: '一括', step: '1ステップずつ' },
  step: '次へ',
  playing: '再生中',
  paused: '一時停止中',
  over: '終了',
  pause: '一時停止',
  continue: '再生',
  position: '記録の再生位置',
  progress: (done, total) => `${total}件中${done}件`,
  endReplay: 'チャットに戻る',
}
