import { jaShell } from './shell/ja-shell.ts'
import type { Labels } from './labels.ts'

export const ja: Labels = {
  title: 'ADK Stream Protocol',
  tagline: '何をお手伝いしましょうか？',
  intro: 'エージェントの操作を承認できます。どこからでも、話しながらでも、実行は一度だけです。',
  newChat: '新しいチャット',
  skipToInput: 'メッセージ入力欄へ移動',
  placeholder: 'メッセージを入力…',
  reload: 'ページを再読み込み',
  latest: '最新のメッセージへ移動',
  loading: 'チャットを読み込んでいます…',
  unreadableTitle: 'チャットを読み込めませんでした',
  unreadableText: 'ネットワークを確認して、もう一度お試しください。',
  missingTitle: 'このチャットは見つかりません',
  missingText: '削除されたか、別のブラウザで作成されたチャットです。',
  suggestionsLabel: '入力例',
  calls: {
    language: 'ja',
    descriptions: {
      payment: (money, recipient) => `${withHonorific(recipient)}に${money}を送金`,
      paid: (money, recipient) => `${withHonorific(recipient)}に${money}を送金しました`,
      notPaid: (money, recipient) => `未送金：${withHonorific(recipient)}に${money}`,
      location: '現在地をアシスタントと共有',
      located: '現在地をアシスタントと共有しました',
      notLocated: '現在地は共有していません',
      trip: (place, nights, price) => `${place}に${nights}泊を${price}で予約する`,
      tripBooked: (place, nights, price) => `${place}に${nights}泊を${price}で予約しました`,
      notes: (count) => `メモを${count}件削除する`,
      notesDeleted: (count) => `メモを${count}件削除しました`,
    },
    names: {
      assistant: 'アシスタント',
      get_weather: '天気',
      process_payment: '送金',
      get_location: '現在地',
      change_bgm: '音楽',
      accountant: '経理担当',
      get_calendar: 'カレンダー',
      notebook: 'メモ帳',
      notes_list: 'メモの一覧',
      notes_delete: 'メモの削除',
      weekend_trip: '週末の旅行',
      book_trip: '旅行の予約',
      plan: '計画',
      book: '予約',
      confirm: '確認',
    },
    argumentNames: {
      location: '場所',
      track: 'トラック',
      amount: '金額',
      recipient: '送金先',
      currency: '通貨',
      description: '説明',
      titles: 'タイトル',
      place: '場所',
      nights: '泊数',
      price: '料金',
    },
  },
  shell: jaShell,
  music: {
    track: (track) => `トラック${track}`,
    mute: (track) => `トラック${track}をミュート`,
  },
} /** Adds さん to a name, unless it has a title or is not written in Japanese. */
function withHonorific(name: string): string {
  const isJapanese = /[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}]$/u.test(name)
  return isJapanese && !/(?:さん|様|さま|君|くん|ちゃん|氏|先生)$/u.test(name)
    ? `${name}さん`
    : name
}
