import { type Language, useLanguage } from '../../i18n/language.tsx'

/** Labels of the panel about the session. */
interface SessionLabels {
  readonly locale: string
  readonly loading: string
  readonly empty: string
  readonly unreadable: string
  readonly state: string
  readonly noState: string
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
