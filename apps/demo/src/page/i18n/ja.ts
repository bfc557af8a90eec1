import { AudioLines, CircleCheck, Users } from 'lucide-react'

import type { DemoLabels } from './labels.ts'

export const ja: DemoLabels = {
  page: {
    tagline: '何をお手伝いしましょうか？',
    intro: 'エージェントの操作を承認できます。どこからでも、話しながらでも、実行は一度だけです。',
    emulated:
      'デモ用モデル：入力例に対する回答が用意されています。Gemini を使うには GOOGLE_API_KEY を設定してください。',
    emulatedVoice: '内蔵エミュレーターは音声を認識しません。何を話しても、デモの会話を再生します。',
    toolNames: {
      assistant: 'アシスタント',
      get_weather: '天気',
      process_payment: '送金',
      propose_plan: '計画',
      get_location: '現在地',
      change_bgm: '音楽',
      accountant: '経理担当',
      get_calendar: 'カレンダー',
      notebook: 'メモ帳',
      notes: 'メモ帳',
      notes_add: 'メモの追加',
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
    starts: [
      {
        icon: CircleCheck,
        title: '送金を承認する',
        explanation: '承認を待ってから、一度だけ実行されます。',
        text: '花子さんに50ドル送金してください',
      },
      {
        icon: Users,
        title: '二人で承認する',
        explanation:
          '500ドルを超える送金は二人目が承認します。QRコードでスマートフォンからも承認できます。',
        text: '花子さんに600ドル送金してください',
      },
      {
        icon: AudioLines,
        title: '話しながら承認する',
        explanation: 'アシスタントと音声で会話しながら承認できます。',
      },
    ],
    suggestions: [
      {
        title: '承認と質問',
        suggestions: [
          { text: '花子さんに30ドル、太郎さんに40ドル送金してください' },
          {
            text: '計画を立てて、花子さんに20ドル、太郎さんに30ドル、次郎さんに40ドル送金してください',
            modes: ['sse'],
          },
          { text: '経理に、花子さんへ20ドル送金するように頼んで', modes: ['sse'] },
          { text: '京都の週末旅行を計画して', modes: ['sse'] },
          { text: '古いメモを削除して', modes: ['sse'] },
          { text: 'レストランの席を予約して', modes: ['sse', 'live'] },
          { text: '今日の予定を見せて', modes: ['sse', 'live'], needsSignIn: true },
        ],
      },
      {
        title: 'ツール',
        isMore: true,
        suggestions: [
          { text: '東京の天気は？' },
          { text: '現在地を教えて' },
          { text: '新しいメモを書いて', modes: ['sse'] },
          { text: 'トラック2に変更して' },
          { text: '花子さんに20ドル送金してから、太郎さんに30ドル送金してください' },
        ],
      },
      {
        title: 'さまざまな回答',
        isMore: true,
        suggestions: [
          { text: '灯台の絵を描いて' },
          { text: 'この画像の大きさと色は？', needsPicture: true },
          { text: '順を追って考えて：9.9と9.11はどちらが大きい？' },
          { text: 'お茶の歴史を検索して' },
        ],
      },
      {
        title: '停止とエラー',
        isMore: true,
        suggestions: [
          { text: '途中で止められるように、長い物語を書いて' },
          { text: 'レート制限のエラーを見せて' },
        ],
      },
    ],
  },
  descriptions: {
    payment: (money, recipient) => `${withHonorific(recipient)}に${money}を送金`,
    paid: (money, recipient) => `${withHonorific(recipient)}に${money}を送金しました`,
    notPaid: (money, recipient) => `未送金：${withHonorific(recipient)}に${money}`,
    plan: (payments) => `送金${payments}件の計画`,
    location: '現在地をアシスタントと共有',
    located: '現在地をアシスタントと共有しました',
    notLocated: '現在地は共有していません',
    trip: (place, nights, price) => `${place}${nights}泊を${price}で予約`,
    tripBooked: (place, nights, price) => `${place}${nights}泊を${price}で予約しました`,
    notes: (count) => `メモを${count}件削除`,
    notesDeleted: (count) => `メモを${count}件削除しました`,
  },
  weather: {
    degrees: (value) => `${value}℃`,
    feelsLike: (value) => `体感${value}℃`,
    humidity: (value) => `湿度${value}%`,
    wind: (value) => `風速${value}m/s`,
    sample: 'サンプルデータ',
    conditions: {
      sunny: '晴れ',
      clear: '晴れ',
      'partly cloudy': '晴れ時々曇り',
      cloudy: '曇り',
      clouds: '曇り',
      rainy: '雨',
      rain: '雨',
      drizzle: '霧雨',
      foggy: '霧',
      fog: '霧',
      mist: '霧',
      haze: 'もや',
      windy: '強風',
      snow: '雪',
      thunderstorm: '雷雨',
    },
  },
  music: {
    label: '音楽',
    off: 'オフ',
    track: (track) => `トラック${track}`,
    mute: (track) => `トラック${track}をミュート`,
  },
  direct: {
    name: 'Gemini（直接）',
    connection: 'Gemini（直接）',
    explanation:
      'エージェントを介さず、AI SDK だけで Gemini に接続します（比較用、保存されません）。',
  },
  approver: {
    cancel: 'キャンセル',
    is: 'このブラウザーは高額送金の二人目の承認者です。',
    how: '高額送金には二人目の承認者が必要です。試すには、別のブラウザーかプライベートウィンドウで次のアドレスを開き、ターミナルに表示されたコードを入力してください：',
    title: '二人目の承認者',
    code: 'ターミナルに表示されたコード',
    enter: '二人目の承認者になる',
    wrong: 'サーバーの起動時に表示されたコードと一致しません。',
  },
}

/** Adds さん to a name, unless it has a title or is not written in Japanese. */
function withHonorific(name: string): string {
  const isJapanese = /[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}]$/u.test(name)
  return isJapanese && !/(?:さん|様|さま|君|くん|ちゃん|氏|先生)$/u.test(name)
    ? `${name}さん`
    : name
}
