import type { ErrorCode } from '../../protocol/errors.ts'
import type { Notice, NoticeType } from './notice.ts'

/** The words of cards. */
export interface SlackLabels {
  readonly approve: string
  readonly deny: string
  readonly open: string
  readonly cancel: string
  readonly reason: string
  readonly approveQuestion: string
  readonly runsAtOnce: string
  readonly unknownAccount: string
  /** Why a decision was refused, by its code. Default: the message of the error, in English. */
  readonly refusals: Readonly<Partial<Record<ErrorCode, string>>>
  readonly requestedBy: (name: string) => string
  readonly severity: (severity: string) => string
  readonly states: Readonly<Record<ApprovalNotice, string>>
  /** What is said about a person who approves every call. */
  readonly fast: (name: string, pace: NonNullable<Notice['pace']>) => string
}

/** The types of notices that a card shows. */
export type ApprovalNotice = Exclude<NoticeType, 'approver.fast'>

export const SLACK_LABELS: Readonly<Record<'en' | 'ja', SlackLabels>> = {
  en: {
    approve: 'Approve',
    deny: 'Deny',
    open: 'Open',
    cancel: 'Cancel',
    reason: 'Reason',
    approveQuestion: 'Approve this call?',
    runsAtOnce: 'It runs at once.',
    unknownAccount: 'Nothing was decided: your Slack account is not known to this application.',
    refusals: {},
    requestedBy: (name) => `Requested by ${name}`,
    severity: (severity) => `Severity: ${severity}`,
    fast: (name, { decisions, fast, withinMs }) =>
      `${name} has approved each of the last ${decisions} calls, ${fast} of them within ${withinMs / 1_000} s.`,
    states: {
      'approval.requested': 'Needs approval',
      'approval.reminder': 'Still needs approval',
      'approval.voted': 'Approved by one of several people',
      'approval.withdrawn': 'An approval was withdrawn',
      'approval.approved': 'Approved',
      'approval.denied': 'Denied',
      'approval.expired': 'Expired',
      'approval.cancelled': 'Cancelled',
      'approval.succeeded': 'Approved and done',
      'approval.failed': 'Approved, but it failed',
      'approval.unknown': 'Approved, but it is not known whether it was done',
    },
  },
  ja: {
    approve: '承認',
    deny: '拒否',
    open: '開く',
    cancel: 'キャンセル',
    reason: '理由',
    approveQuestion: 'この呼び出しを承認しますか？',
    runsAtOnce: '承認するとすぐに実行されます。',
    unknownAccount:
      'この Slack アカウントはアプリケーションに登録されていないため、決定されていません。',
    refusals: {
      'unknown-approval': 'この承認依頼は見つかりません。',
      'not-allowed': 'ここではこの承認を決定できません。承認のページを開いてください。',
      'approval-decided': 'この承認依頼は、すでに処理されています。',
      'approval-voted': 'すでに承認しています。ほかの人の承認を待っています。',
      'approval-expired': '期限が過ぎたため、実行されませんでした。',
      'approval-cancelled': '取り消されたため、実行されませんでした。',
      'preview-changed': '表示後に内容が変わりました。最新の内容を確認してください。',
      'preview-failed':
        '現在、実行した場合の結果を確認できません。少し待ってからもう一度お試しください。',
    },
    requestedBy: (name) => `依頼者: ${name}`,
    severity: (severity) => `重要度: ${SEVERITIES[severity] ?? severity}`,
    fast: (name, { decisions, fast, withinMs }) =>
      `${name} は直近の ${decisions} 件をすべて承認しました。うち ${fast} 件は ${withinMs / 1_000} 秒以内です。`,
    states: {
      'approval.requested': '承認が必要です',
      'approval.reminder': 'まだ承認待ちです',
      'approval.voted': '複数人のうち 1 人が承認しました',
      'approval.withdrawn': '承認が取り下げられました',
      'approval.approved': '承認済み',
      'approval.denied': '拒否済み',
      'approval.expired': '期限切れ',
      'approval.cancelled': '取り消されました',
      'approval.succeeded': '承認され、完了しました',
      'approval.failed': '承認されましたが、失敗しました',
      'approval.unknown': '承認されましたが、実行されたかどうか不明です',
    },
  },
}

const SEVERITIES: Readonly<Record<string, string>> = { low: '低', medium: '中', high: '高' }
