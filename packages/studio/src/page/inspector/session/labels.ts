import { type Language, useLanguage } from '../../i18n/language.tsx'

/** Labels of the panel about the session. */
interface SessionLabels {
  readonly locale: string
  readonly loading: string
  readonly empty: string
  readonly unreadable: string
  readonly state: string
  readonly noState: string
  readonly addKey: string
  readonly key: string
  readonly keyHint: string
  readonly valueOf: (key: string) => string
  readonly newValue: string
  readonly notJson: string
  readonly saveKey: string
  readonly keySaved: (key: string) => string
  readonly saveProblems: { readonly busy: string; readonly failed: string }
  readonly artifacts: string
  readonly noArtifacts: string
  readonly unreadableArtifacts: string
  readonly versions: (count: number) => string
  readonly version: string
  readonly download: string
  readonly loadingArtifact: string
  readonly unreadableArtifact: string
  readonly onlyDownload: string
  readonly importFile: string
  readonly importProblems: { readonly 'not-a-session': string; readonly failed: string }
  readonly events: string
  /** The position in the list of events. */
  readonly position: (at: number, count: number) => string
  readonly previous: string
  readonly next: string
  readonly tokens: (input: string, output: string) => string
  readonly compare: string
  readonly before: string
  readonly after: string
  readonly modelCall: (number: number, agent: string, time: string) => string
  readonly loadingCalls: string
  readonly unreadableCalls: string
  readonly sameInstruction: string
  readonly save: string
  readonly call: (names: string) => string
  readonly response: (names: string) => string
}

const en: SessionLabels = {
  locale: 'en-US',
  loading: 'Loading the session…',
  empty: 'The session starts with the first message.',
  unreadable: 'The session could not be loaded.',
  state: 'Session state',
  noState: 'The state is empty.',
  addKey: 'Add a key',
  key: 'Key',
  keyHint: 'ADK does not store keys that begin with temp:',
  valueOf: (key) => `Value of ${key} (JSON)`,
  newValue: 'Value (JSON)',
  notJson: 'Enter JSON, such as 5, "text" or {"a": 1}.',
  saveKey: 'Save',
  keySaved: (key) => `${key} is saved.`,
  saveProblems: {
    busy: 'A reply is running. Save again when it has ended.',
    failed: 'The key could not be saved.',
  },
  artifacts: 'Artifacts',
  noArtifacts: 'The agent has saved no files.',
  unreadableArtifacts: 'The artifacts could not be loaded.',
  versions: (count) => (count === 1 ? '1 version' : `${count} versions`),
  version: 'Version',
  download: 'Download',
  loadingArtifact: 'Loading the file…',
  unreadableArtifact: 'The file could not be loaded.',
  onlyDownload: 'This file cannot be shown here. Download it to open it.',
  importFile: 'Import a session file',
  importProblems: {
    'not-a-session': 'This is not the file of an ADK session.',
    failed: 'The session could not be imported.',
  },
  events: 'ADK events',
  position: (at, count) => `Event ${at} of ${count}`,
  previous: 'Previous event',
  next: 'Next event',
  tokens: (input, output) => `${input} tokens in, ${output} out, in the whole chat`,
  compare: 'Compare two instructions',
  before: 'Before',
  after: 'After',
  modelCall: (number, agent, time) => `Model call ${number}: ${agent}, ${time}`,
  loadingCalls: 'Loading the model calls…',
  unreadableCalls: 'The model calls could not be loaded.',
  sameInstruction: 'Both instructions are the same.',
  save: 'Save the session as a file',
  call: (names) => `calls ${names}`,
  response: (names) => `result of ${names}`,
}

const ja: SessionLabels = {
  locale: 'ja-JP',
  loading: 'セッションを読み込んでいます…',
  empty: '最初のメッセージでセッションが始まります。',
  unreadable: 'セッションを読み込めませんでした。',
  state: 'セッションの状態',
  noState: '状態は空です。',
  addKey: 'キーを追加',
  key: 'キー',
  keyHint: 'temp: で始まるキーはADKに保存されません',
  valueOf: (key) => `${key} の値（JSON）`,
  newValue: '値（JSON）',
  notJson: '5、"text"、{"a": 1} のようなJSONを入力してください。',
  saveKey: '保存',
  keySaved: (key) => `${key} を保存しました。`,
  saveProblems: {
    busy: '応答の実行中です。終わってからもう一度保存してください。',
    failed: 'キーを保存できませんでした。',
  },
  artifacts: 'アーティファクト',
  noArtifacts: 'エージェントが保存したファイルはありません。',
  unreadableArtifacts: 'アーティファクトを読み込めませんでした。',
  versions: (count) => `${count}個のバージョン`,
  version: 'バージョン',
  download: 'ダウンロード',
  loadingArtifact: 'ファイルを読み込んでいます…',
  unreadableArtifact: 'ファイルを読み込めませんでした。',
  onlyDownload: 'このファイルはここでは表示できません。ダウンロードして開いてください。',
  importFile: 'セッションファイルを取り込む',
  importProblems: {
    'not-a-session': 'ADKセッションのファイルではありません。',
    failed: 'セッションを取り込めませんでした。',
  },
  events: 'ADKのイベント',
  position: (at, count) => `イベント ${at} / ${count}`,
  previous: '前のイベント',
  next: '次のイベント',
  tokens: (input, output) => `チャット全体のトークン：入力 ${input}、出力 ${output}`,
  compare: '2つの指示を比較',
  before: '比較元',
  after: '比較先',
  modelCall: (number, agent, time) => `モデル呼び出し ${number}：${agent}、${time}`,
  loadingCalls: 'モデル呼び出しを読み込んでいます…',
  unreadableCalls: 'モデル呼び出しを読み込めませんでした。',
  sameInstruction: '2つの指示は同じです。',
  save: 'セッションをファイルに保存',
  call: (names) => `${names} を呼び出し`,
  response: (names) => `${names} の結果`,
}

const LABELS: Readonly<Record<Language, SessionLabels>> = { en, ja }

export function useSessionLabels(): SessionLabels {
  return LABELS[useLanguage().language]
}
