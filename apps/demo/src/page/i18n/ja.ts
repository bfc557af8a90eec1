import { jaShell } from './shell/ja-shell.ts'
import type { Labels } from './labels.ts'

export const ja: Labels = {
  title: 'ADK Stream Protocol',
  tagline: '何をお手伝いしましょうか？',
  intro: 'エージェントの操作を承認できます。どこからでも、話しながらでも、実行は一度だけです。',
  newChat: '新しいチャット',
  message: 'メッセージ',
  placeholder: 'メッセージを入力…',
  hint: 'Enter で送信、Shift+Enter で改行',
  send: '送信',
  stop: '停止',
  reload: 'ページを再読み込み',
  latest: '最新のメッセージへ移動',
  loading: 'チャットを読み込んでいます…',
  unreadableTitle: 'チャットを読み込めませんでした',
  unreadableText: 'ネットワークを確認して、もう一度お試しください。',
  missingTitle: 'このチャットは見つかりません',
  missingText: '削除されたか、別のブラウザで作成されたチャットです。',
  suggestionsLabel: '入力例',
  calls: {
    locale: 'ja-JP',
    descriptions: {
      payment: (money, recipient) => `${recipient} に ${money} を送金します`,
      location: '現在地をアシスタントと共有します',
    },
    argumentNames: { amount: '金額', recipient: '送金先', currency: '通貨', description: '説明' },
  },
  shell: jaShell,
  music: {
    track: (track) => `トラック${track}`,
    mute: (track) => `トラック${track}をミュート`,
  },
}
