import { useLanguage } from '../i18n/language.tsx'
import type { ApprovalStage } from './approval-path.ts'
import type { Span } from './trace.ts'

/** Labels of the inspector. */
export interface InspectorLabels {
  readonly locale: string
  readonly title: string
  readonly timeline: string
  readonly approvals: string
  readonly wire: string
  readonly recording: string
  readonly nothingYet: string
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
  readonly secondPerson: string
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
    readonly tool: (name: string) => string
    readonly decision: (name: string, left: string | undefined) => string
    readonly connection: (left: string | undefined) => string
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
  readonly over: string
  readonly endReplay: string
}

export function useInspectorLabels(): InspectorLabels {
  return useLanguage().language === 'ja' ? ja : en
}

const en: InspectorLabels = {
  locale: 'en',
  title: 'Inspector',
  timeline: 'Timeline',
  approvals: 'Approvals',
  wire: 'Wire',
  recording: 'Recording',
  nothingYet: 'No traffic yet. Send a message.',
  noApprovals: 'No call in this chat has needed approval.',
  triggers: {
    'submit-message': 'Sent',
    'regenerate-message': 'Regenerated',
    resume: 'Resumed',
    turn: 'Started by the server',
  },
  firstChunk: 'first chunk',
  firstWord: 'first word',
  whole: 'total',
  open: 'streaming',
  chunks: (count) => (count === 1 ? '1 chunk' : `${count.toLocaleString('en')} chunks`),
  spans: { reasoning: 'reasoning', text: 'text', call: 'call', approval: 'approval' },
  reading: 'Loading the audit record…',
  unreadable: 'The audit record could not be loaded.',
  record: 'Audit record of the server',
  secondPerson: 'A second person must approve.',
  votes: (given, needed) => `${given} of ${needed} have approved.`,
  stops: {
    requested: 'requested',
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
    you: 'Idle. It is your turn.',
    model: 'Waiting for the model.',
    tool: (name) => `Waiting for the tool ${name}.`,
    decision: (name, left) =>
      left === undefined
        ? `Waiting for a decision on ${name}.`
        : `Waiting for a decision on ${name}, ${left} left.`,
    connection: (left) =>
      left === undefined
        ? 'Connection lost. Reconnecting…'
        : `Connection lost. Next attempt in ${left}.`,
  },
  recordingIntro:
    'A recording contains the traffic between this page and the server, including all messages. It stays in this page until you save it.',
  startRecording: 'Record',
  stopRecording: 'Stop recording',
  recordingNow: 'Recording…',
  recorded: (size) => `${size} recorded.`,
  download: 'Download',
  play: 'Play',
  openFile: 'Play a file…',
  brokenFile: 'This file is not a recording. Choose a .jsonl file that was saved here.',
  replay: 'Replay',
  pace: 'Speed',
  paces: { 'real-time': 'real time', fast: 'instant', step: 'step by step' },
  step: 'Next step',
  playing: 'Playing',
  over: 'Finished',
  endReplay: 'Back to the chat',
}

const ja: InspectorLabels = {
  locale: 'ja',
  title: 'インスペクター',
  timeline: 'タイムライン',
  approvals: '承認',
  wire: '通信',
  recording: '記録',
  nothingYet: 'まだ通信はありません。メッセージを送信してください。',
  noApprovals: 'このチャットでは、まだ承認が必要になっていません。',
  triggers: {
    'submit-message': '送信',
    'regenerate-message': '再生成',
    resume: '再開',
    turn: 'サーバーから開始',
  },
  firstChunk: '最初のチャンク',
  firstWord: '最初の文字',
  whole: '合計',
  open: '受信中',
  chunks: (count) => `${count.toLocaleString('ja')} チャンク`,
  spans: { reasoning: '思考', text: '回答', call: '呼び出し', approval: '承認待ち' },
  reading: '監査記録を読み込んでいます…',
  unreadable: '監査記録を読み込めませんでした。',
  record: 'サーバーの監査記録',
  secondPerson: 'もう一人の承認が必要です。',
  votes: (given, needed) => `${needed} 人中 ${given} 人が承認しました。`,
  stops: {
    requested: '依頼',
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
    you: '待機中です。メッセージを送信できます。',
    model: 'モデルの応答を待っています。',
    tool: (name) => `ツール ${name} の結果を待っています。`,
    decision: (name, left) =>
      left === undefined
        ? `${name} の承認を待っています。`
        : `${name} の承認を待っています（残り ${left}）。`,
    connection: (left) =>
      left === undefined
        ? '接続が切れました。再接続しています…'
        : `接続が切れました。${left} 後に再接続します。`,
  },
  recordingIntro:
    'このページとサーバーの間の通信を、会話の内容も含めて記録します。保存するまではこのページの中だけにあります。',
  startRecording: '記録を開始',
  stopRecording: '記録を停止',
  recordingNow: '記録中…',
  recorded: (size) => `${size} を記録しました。`,
  download: 'ダウンロード',
  play: '再生',
  openFile: 'ファイルを再生…',
  brokenFile: 'このファイルは記録ではありません。ここで保存した .jsonl ファイルを選んでください。',
  replay: '再生',
  pace: '再生速度',
  paces: { 'real-time': '実際の速度', fast: '一括', step: '1ステップずつ' },
  step: '次へ',
  playing: '再生中',
  over: '終了',
  endReplay: 'チャットに戻る',
}
