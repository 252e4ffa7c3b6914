export { fulfilment } from './fulfilment';
export { orderPayment } from './order-payment';
export { refund } from './refund';
export { sweep } from './sweep';
